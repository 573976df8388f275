import Foundation
import MartletSync
import Testing

/// Which messages wait for transactions, and for how long.
@Suite struct WaitingMessagesTests {
    private let start = ContinuousClock.now
    private let sender = NodeID(UUID())
    private let other = NodeID(UUID())

    private func message(_ step: Int, from sender: NodeID, bytes: Int = 1) -> AntiEntropyMessage {
        var wire = WireCheckMessage()
        wire.step = UInt32(step)
        return AntiEntropyMessage(
            wire: wire, sender: sender, check: NodeID(UUID()), vector: VersionVector(), byteCount: bytes)
    }

    private func checks(_ waiting: WaitingMessages) -> [NodeID] { (0..<waiting.count).map { waiting[$0].check } }

    @Test func aNewCheckOfANodeReplacesItsPreviousOneAndNothingElse() {
        let (first, second) = (message(0, from: sender), message(0, from: sender))
        let others = [message(0, from: other), message(1, from: sender), message(3, from: sender)]
        var waiting = WaitingMessages()
        for next in [first] + others + [second] { waiting.add(next, room: 100, at: start) }
        #expect(checks(waiting) == (others + [second]).map(\.check))
    }

    @Test func aMessageWaitsForAQuarterOfAnHour() {
        var waiting = WaitingMessages()
        let (first, second) = (message(1, from: sender), message(1, from: other))
        waiting.add(first, room: 100, at: start)
        waiting.add(second, room: 100, at: start + .seconds(1))
        waiting.drop(at: start + .seconds(900))
        #expect(waiting.count == 2)
        waiting.drop(at: start + .seconds(901))
        #expect(checks(waiting) == [second.check])
        waiting.remove(at: 0)
        #expect(waiting.isEmpty)
    }

    @Test func theOldestMessagesAreDroppedWhenTheyAreTooLargeTogether() {
        var waiting = WaitingMessages()
        let all = [40, 40, 40, 10].map { message(1, from: sender, bytes: $0) }
        for next in all { waiting.add(next, room: 100, at: start) }
        #expect(checks(waiting) == all.dropFirst().map(\.check))
        let large = message(1, from: sender, bytes: 1000)
        waiting.add(large, room: 100, at: start)
        #expect(checks(waiting) == [large.check])
    }

    @Test func theOldestMessagesAreDroppedWhenThereAreTooMany() {
        var waiting = WaitingMessages()
        let all = (0...WaitingMessages.most).map { _ in message(1, from: sender) }
        for next in all { waiting.add(next, room: .max, at: start) }
        #expect(checks(waiting) == all.dropFirst().map(\.check))
    }
}
