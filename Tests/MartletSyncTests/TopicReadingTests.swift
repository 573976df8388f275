import MartletSync
import Testing

/// The consumer's state machine, without a consumer.
@Suite struct TopicReadingTests {
    /// Two partitions, read up to offset 5 and not at all.
    private func assigned() -> TopicReading {
        var reading = TopicReading()
        reading.look(at: [0, 1], from: [PartitionPosition(partition: 0, offset: 5)])
        reading.assign(leaps: 0)
        return reading
    }

    private func end(_ partition: Int32, _ offset: Int64, of reading: TopicReading) -> TopicReading.Event {
        .reported(.endOfPartition(PartitionPosition(partition: partition, offset: offset)), before: reading.next)
    }

    @Test func anAssignmentIsCaughtUpOnceEveryPartitionWasReadToItsEnd() {
        var reading = assigned()
        #expect(reading.state == .catchingUp([0, 1]))
        #expect(reading.handle(end(0, 5, of: reading)) == [.noteEnd(0, end: 5, isLower: false)])
        #expect(reading.state == .catchingUp([1]))
        #expect(reading.handle(end(1, 0, of: reading)) == [.noteEnd(1, end: 0, isLower: false), .compareOwn])
        #expect(reading.state == .caughtUp)
        #expect(reading.behind.isEmpty)
    }

    @Test func aPartitionIsReadUpToItsNextOffsetOrItsEnd() {
        var reading = assigned()
        #expect(reading.hasRead([0: 5]))
        #expect(!reading.hasRead([0: 5, 1: 1]))
        // Control records up to offset 8.
        _ = reading.handle(end(0, 8, of: reading))
        #expect(reading.hasRead([0: 8, 1: 0]))
        #expect(!reading.hasRead([0: 9]))
    }

    @Test func messagesAfterTheEndLeaveThePartitionBehind() {
        var reading = assigned()
        _ = reading.handle(end(0, 5, of: reading))
        let next = [PartitionPosition(partition: 0, offset: 9)]
        #expect(reading.handle(.applied(next: next, rewound: [])) == [])
        #expect(reading.next == [0: 9])
        #expect(reading.behind == [0, 1])
        #expect(reading.state == .catchingUp([1]))
    }

    @Test func offsetsNeverGoBackByMessages() {
        var reading = assigned()
        _ = reading.handle(.applied(next: [PartitionPosition(partition: 0, offset: 4)], rewound: []))
        #expect(reading.next == [0: 5])
    }

    @Test func anEndBelowTheStoredOffsetMeansAnotherLog() {
        var reading = assigned()
        let actions = reading.handle(end(0, 4, of: reading))
        #expect(actions == [.reread(0, why: "the log ends before the stored offset")])
        #expect(reading.state == .catchingUp([0, 1]))
    }

    /// The end lay before the messages that came with it.
    @Test func anEndIsComparedWithTheOffsetsBeforeItsBatch() {
        var reading = assigned()
        let event = end(0, 7, of: reading)
        _ = reading.handle(.applied(next: [PartitionPosition(partition: 0, offset: 9)], rewound: []))
        #expect(reading.handle(event) == [.noteEnd(0, end: 7, isLower: false)])
    }

    @Test func controlRecordsAtTheEndAreNoMessages() {
        var reading = assigned()
        #expect(reading.handle(end(0, 6, of: reading)) == [.noteEnd(0, end: 5, isLower: true)])
        #expect(reading.reached == [0: 6])
    }

    @Test func anotherMessageThanBeforeMovesNoOffset() {
        var reading = assigned()
        let next = [PartitionPosition(partition: 0, offset: 6), PartitionPosition(partition: 1, offset: 2)]
        let actions = reading.handle(.applied(next: next, rewound: [0]))
        #expect(
            actions == [
                .reread(0, why: "the message before the stored offset is not the one that was read there")
            ])
        #expect(reading.next == [0: 5, 1: 2])
    }

    private func positions(_ offsets: [(Int32, Int64)]) -> [PartitionPosition] {
        offsets.map { PartitionPosition(partition: $0.0, offset: $0.1) }
    }

    @Test func theLastReadMessageProvesALog() {
        var reading = assigned()
        reading.expectLastMessage(of: [0])
        #expect(reading.lackingLastMessage(positions([(1, 3)])) == [])
        #expect(reading.unproven == [0])
        #expect(reading.lackingLastMessage(positions([(1, 4), (0, 4), (0, 5)])) == [])
        #expect(reading.unproven == [])
        #expect(reading.handle(end(0, 6, of: reading)) == [.noteEnd(0, end: 5, isLower: true)])
    }

    @Test func p215ALogWithoutTheLastReadMessageIsAnotherOne() {
        var reading = assigned()
        reading.expectLastMessage(of: [0])
        #expect(reading.lackingLastMessage(positions([(1, 0), (0, 5), (0, 6)])) == [0])
        reading.assign(leaps: 0)
        #expect(reading.unproven == [])
    }

    @Test(arguments: [5, 6]) func p215ALogWithOnlyControlRecordsAfterTheExpectedMessageIsAnotherOne(offset: Int64) {
        var reading = assigned()
        reading.expectLastMessage(of: [0])
        let actions = reading.handle(end(0, offset, of: reading))
        #expect(actions == [.reread(0, why: "the message before the stored offset is gone")])
    }

    @Test func anotherNumberOfPartitionsReconnects() {
        var reading = assigned()
        #expect(reading.handle(.counted(2)) == [])
        #expect(reading.handle(.counted(3)) == [.reconnect(why: nil)])
        #expect(reading.handle(.counted(1)) == [.reconnect(why: nil)])
    }

    @Test func aSnapshotThatMovesOffsetsReconnects() {
        var reading = assigned()
        #expect(reading.handle(.leapt(0)) == [])
        #expect(reading.handle(.leapt(1)) == [.reconnect(why: nil)])
        reading.assign(leaps: 1)
        #expect(reading.handle(.leapt(1)) == [])
    }

    @Test func onlyAnUnknownTopicReconnectsAfterAnErrorThatCanBeRetried() {
        var reading = assigned()
        let unknown = BusError(.unknownTopic, "gone", isRetriable: true)
        let slow = BusError(.unreachable, "slow", isRetriable: true)
        let denied = BusError(.other, "denied", isRetriable: false)
        #expect(reading.handle(.reported(.error(unknown), before: [:])) == [.warn(unknown), .reconnect(why: nil)])
        #expect(reading.handle(.reported(.error(slow), before: [:])) == [.warn(slow)])
        #expect(reading.handle(.reported(.error(denied), before: [:])) == [.fail(denied)])
    }

    @Test func nothingFollowsFromEventsWithoutAConnection() {
        var reading = assigned()
        reading.disconnect()
        #expect(reading.handle(end(0, 3, of: reading)) == [])
        #expect(reading.handle(.counted(9)) == [])
        #expect(reading.handle(.applied(next: [], rewound: [0])) == [])
        #expect(reading.state == .disconnected)
    }

    @Test func theCountOfOwnTransactionsSurvivesALostConnectionButNoMovedOffsets() {
        var reading = assigned()
        reading.scan = OwnSequenceScan()
        _ = reading.handle(.applied(next: [PartitionPosition(partition: 0, offset: 8)], rewound: []))
        reading.disconnect()
        reading.look(from: [PartitionPosition(partition: 0, offset: 8)])
        #expect(reading.scan != nil)
        reading.look(from: [PartitionPosition(partition: 0, offset: 20)])
        #expect(reading.scan == nil)
        #expect(reading.partitions == [0, 1])
    }
}
