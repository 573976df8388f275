import MartletSync
import Testing

/// The reading of the snapshot topic, without a topic.
@Suite struct SnapshotTopicReadingTests {
    private func message(_ offset: Int64, in partition: Int32 = 0, timestamp: Int64 = 1) -> IncomingMessage {
        IncomingMessage(
            position: PartitionPosition(partition: partition, offset: offset), key: [], headers: [], payload: [],
            timestamp: timestamp, isBrokerTimestamp: true)
    }

    private func start(_ offset: Int64, in partition: Int32 = 0) -> PartitionPosition {
        PartitionPosition(partition: partition, offset: offset)
    }

    /// A topic with one partition, read to its end: messages 0 to 2.
    private func read() -> SnapshotTopicReading {
        var reading = SnapshotTopicReading()
        _ = reading.begin([Watermarks(low: 0, high: 3)])
        for offset: Int64 in 0..<3 { _ = reading.handle(message(offset)) }
        return reading
    }

    @Test func aTopicIsReadUpToTheEndThatItHadAtTheBeginning() {
        var reading = SnapshotTopicReading()
        #expect(
            reading.begin([Watermarks(low: 5, high: 7), Watermarks(low: 2, high: 2), Watermarks(low: 0, high: 1)])
                == .read([start(5), start(0, in: 2)]))
        #expect(reading.state == .reading(ends: [0: 7, 2: 1]))
        for next in [message(5), message(0, in: 2), message(6)] {
            #expect(!reading.isAtEnd)
            #expect(reading.handle(next) == .take)
        }
        #expect(reading.isAtEnd)
    }

    @Test func anEmptyTopicHasNothingNew() {
        var reading = SnapshotTopicReading()
        #expect(reading.begin([]) == .upToDate)
        #expect(reading.begin([Watermarks(low: 4, high: 4)]) == .upToDate)
        #expect(reading.isAtEnd)
    }

    @Test func anEndThatIsNoMessageEndsThePartition() {
        var reading = SnapshotTopicReading()
        _ = reading.begin([Watermarks(low: 0, high: 3)])
        #expect(reading.handle(message(0)) == .take)
        #expect(reading.handle(.endOfPartition(start(3))) == .proceed)
        #expect(reading.isAtEnd)
        // Only the last message is looked for again.
        #expect(reading.begin([Watermarks(low: 0, high: 3)]) == .read([start(0)]))
    }

    @Test func theNextTimeBeginsWithTheLastMessage() {
        var reading = read()
        #expect(reading.begin([Watermarks(low: 0, high: 4)]) == .read([start(2)]))
        #expect(reading.handle(message(2)) == .proceed)
        #expect(!reading.isAtEnd)
        #expect(reading.handle(message(3)) == .take)
        #expect(reading.isAtEnd)
    }

    @Test func anotherMessageInPlaceOfTheLastOneIsAnotherTopic() {
        var reading = read()
        _ = reading.begin([Watermarks(low: 0, high: 5)])
        #expect(reading.handle(message(2, timestamp: 2)) == .replaced)
        reading = read()
        _ = reading.begin([Watermarks(low: 0, high: 5)])
        // Compaction has removed it.
        #expect(reading.handle(message(3)) == .replaced)
        reading = read()
        _ = reading.begin([Watermarks(low: 0, high: 5)])
        #expect(reading.handle(.endOfPartition(start(5))) == .replaced)
    }

    @Test(arguments: [
        [Watermarks(low: 0, high: 2)], [Watermarks(low: 3, high: 9)], [],
    ]) func aTopicThatLacksWhatWasReadIsAnotherOne(marks: [Watermarks]) {
        var reading = read()
        #expect(reading.begin(marks) == .replaced)
        #expect(reading.isAtEnd)
    }

    /// The topic is recreated while a node can't reach the broker, and soon has as many messages.
    @Test func aTopicThatIsRecreatedAfterALostConnectionIsAnotherOne() {
        var reading = SnapshotTopicReading()
        _ = reading.begin([Watermarks(low: 0, high: 9)])
        _ = reading.handle(message(0))
        _ = reading.handle(message(1))
        #expect(
            reading.handle(.disconnected(reason: "cut"))
                == .fail(BusError(.unreachable, "cut", isRetriable: true)))
        #expect(reading.begin([Watermarks(low: 0, high: 9)]) == .read([start(1)]))
        #expect(reading.handle(message(1, timestamp: 2)) == .replaced)
    }

    @Test func anAttemptThatFailsContinuesAfterTheLastMessage() {
        var reading = SnapshotTopicReading()
        _ = reading.begin([Watermarks(low: 0, high: 3)])
        _ = reading.handle(message(0))
        let lost = BusError(.other, "lost", isRetriable: true)
        #expect(reading.handle(.error(lost)) == .fail(lost))
        #expect(reading.begin([Watermarks(low: 0, high: 3)]) == .read([start(0)]))
        #expect(reading.handle(message(0)) == .proceed)
        #expect(reading.handle(message(1)) == .take)
        #expect(reading.handle(message(2)) == .take)
        #expect(reading.isAtEnd)
    }

    /// Otherwise a link that brings one message at a time would bring nothing but known ones.
    @Test func aPartitionThatAnInterruptedAttemptHasReadIsNotReadAgain() {
        var reading = SnapshotTopicReading()
        let marks = [Watermarks(low: 0, high: 1), Watermarks(low: 0, high: 2)]
        _ = reading.begin(marks)
        #expect(reading.handle(message(0)) == .take)
        _ = reading.handle(.disconnected(reason: "cut"))
        #expect(reading.begin(marks) == .read([start(0, in: 1)]))
        #expect(reading.handle(message(0, in: 1)) == .take)
        _ = reading.handle(.disconnected(reason: "cut"))
        #expect(reading.begin(marks) == .read([start(0, in: 1)]))
        #expect(reading.handle(message(0, in: 1)) == .proceed)
        #expect(reading.handle(message(1, in: 1)) == .take)
        #expect(reading.isAtEnd)
        // All were read, so the last message of each is looked for again.
        #expect(reading.begin(marks) == .read([start(0), start(1, in: 1)]))
    }

    @Test func aTopicThatChangesWhileItIsReadIsReadAgainTheNextTime() {
        var reading = SnapshotTopicReading()
        _ = reading.begin([Watermarks(low: 0, high: 3)])
        guard case .forget(let error) = reading.handle(.offsetOutOfRange(partition: 0)) else {
            Issue.record("An offset that is out of range was ignored")
            return
        }
        #expect(error.isRetriable)
    }
}
