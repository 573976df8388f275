import MartletSync
import Testing

/// The publisher's state machine, without a producer.
@Suite struct PublishCycleTests {
    private let lost = BusError(.other, "lost", isRetriable: true)

    private func answer(_ sequence: UInt64, _ error: BusError? = nil) -> Acknowledgement {
        let stored = PartitionPosition(partition: 0, offset: 0)
        return Acknowledgement(tag: sequence, result: error.map { .failure($0) } ?? .success(stored))
    }

    /// Three transactions in flight, the second in two messages.
    private func sending() -> PublishCycle {
        var cycle = PublishCycle(acknowledged: 0)
        cycle.begin(1, messages: 1, bytes: 10)
        cycle.begin(2, messages: 2, bytes: 20)
        cycle.begin(3, messages: 1, bytes: 30)
        return cycle
    }

    @Test func acknowledgedTransactionsAreNewsUntilTheyAreStored() {
        var cycle = sending()
        #expect(!cycle.hasNews)
        #expect(cycle.take(answer(1)) == nil)
        #expect(cycle.hasNews && cycle.window.acknowledged == 1)
        cycle.noteStored()
        #expect(!cycle.hasNews && cycle.stored == 1)
        #expect(cycle.state == .sending)
    }

    @Test func aFailureWaitsForEveryAnswerAndRestartsAfterTheAcknowledgedPrefix() {
        var cycle = sending()
        _ = cycle.take(answer(1))
        #expect(cycle.take(answer(2, lost)) == lost)
        #expect(cycle.state == .draining)
        _ = cycle.take(answer(2))
        #expect(cycle.state == .draining)
        #expect(cycle.take(answer(3, BusError(.other, "also lost", isRetriable: true))) != nil)
        #expect(cycle.state == .drained)
        #expect(cycle.restart() == PublishCycle.Failure(count: 2, first: 2, error: lost))
        #expect(cycle.state == .sending)
        #expect(cycle.window.acknowledged == 1 && cycle.window.sent == 1)
        #expect(cycle.failure == nil)
    }

    @Test func thePauseGrowsUntilTheBrokerAcknowledgesSomething() {
        var cycle = PublishCycle(acknowledged: 0)
        var pauses: [Duration] = []
        for _ in 0..<3 {
            cycle.begin(1, messages: 1, bytes: 1)
            _ = cycle.take(answer(1, lost))
            _ = cycle.restart()
            pauses.append(cycle.backoff.delay)
            // A step that sends proves nothing.
            cycle.succeed()
        }
        #expect(pauses == [.milliseconds(50), .milliseconds(100), .milliseconds(200)])
        #expect(cycle.backoff.delay == .milliseconds(200))
        cycle.begin(1, messages: 1, bytes: 1)
        _ = cycle.take(answer(1))
        cycle.succeed()
        #expect(cycle.backoff.delay == .zero)
    }

    @Test func aProducerThatThisNodeClosedIsNoFailureToReport() {
        var cycle = sending()
        #expect(cycle.take(answer(1, BusError(.closed, "closed", isRetriable: true))) == nil)
        #expect(cycle.state == .draining)
        #expect(cycle.failure == nil)
    }

    @Test func messagesThatNeverWentOutNeedNoAnswer() {
        var cycle = PublishCycle(acknowledged: 0)
        cycle.begin(1, messages: 3, bytes: 30)
        cycle.drop(1, messages: 3, because: BusError(.messageTooLarge, "too large", isRetriable: false))
        #expect(cycle.state == .drained)
        #expect(cycle.isTooLarge)
        _ = cycle.restart()
        #expect(!cycle.isTooLarge)
    }

    @Test func aTopicThatLostEverythingIsPublishedFromTheSequenceThatTheStoreHasNow() {
        var cycle = sending()
        for sequence: UInt64 in [1, 2, 2, 3] { _ = cycle.take(answer(sequence)) }
        cycle.noteStored()
        cycle.rewind(to: 1)
        #expect(cycle.window.acknowledged == 1 && cycle.window.sent == 1 && cycle.stored == 1)
        #expect(!cycle.hasNews && cycle.state == .sending)
    }
}
