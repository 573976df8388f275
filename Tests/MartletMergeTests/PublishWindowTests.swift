import MartletMerge
import Testing

@Suite struct PublishWindowTests {
    @Test func onlyTheContiguousPrefixIsAcknowledged() {
        var window = PublishWindow(acknowledged: 4)
        for sequence in 5...8 { window.send(Int64(sequence), messages: sequence == 6 ? 2 : 1, bytes: 10) }
        window.acknowledge(8)
        window.acknowledge(6)
        #expect(window.acknowledged == 4)
        window.acknowledge(5)
        #expect(window.acknowledged == 5)
        window.acknowledge(6)
        #expect(window.acknowledged == 6)
        #expect(window.inFlightBytes == 10)
        window.acknowledge(7)
        #expect(window.acknowledged == 8 && window.isEmpty && window.inFlightBytes == 0)
    }

    @Test func theWindowRestartsBehindThePrefixAfterAFailure() {
        var window = PublishWindow(acknowledged: 0)
        for sequence in 1...3 { window.send(Int64(sequence), messages: 1, bytes: 1) }
        window.acknowledge(1)
        window.fail(2)
        window.acknowledge(3)
        #expect(window.acknowledged == 1 && window.hasFailed && window.isAnswered)
        window.restart()
        #expect(window.sent == 1 && !window.hasFailed && window.isEmpty)
        window.restart(from: 9)
        #expect(window.acknowledged == 1)
        window.restart(from: 0)
        #expect(window.acknowledged == 0)
    }

    @Test func duplicateAndLateAcknowledgementsChangeNothing() {
        var window = PublishWindow(acknowledged: 0)
        window.send(1, messages: 1, bytes: 1)
        window.acknowledge(1)
        window.acknowledge(1)
        window.fail(7)
        window.restart()
        window.acknowledge(2)
        #expect(window.acknowledged == 1 && window.inFlightBytes == 0)
    }
}
