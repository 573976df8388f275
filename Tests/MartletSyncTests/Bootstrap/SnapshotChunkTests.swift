import Foundation
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Snapshots whose makers had only some chunks of a transaction.
@Suite struct SnapshotChunkTests {
    let lab: SnapshotLab
    let maker: TestNode
    let reader: TestNode
    /// The chunks of one transaction, as it was sent first.
    let first: [IncomingMessage]
    /// The chunks of the same transaction, sent again as fewer and larger ones.
    let second: [IncomingMessage]

    init() throws {
        lab = try SnapshotLab(partitions: 1)
        maker = try lab.node("maker")
        reader = try lab.node("reader")
        // They learn which topic they read.
        for node in [maker, reader] { try node.consume() }
        let other = try Lab()
        defer { withExtendedLifetime(other) {} }
        let origin = try other.node("origin") { $0.maxMessageBytes = 1000 }
        try origin.write("INSERT INTO setting VALUES ('large', hex(zeroblob(2500)))")
        try origin.publish()
        first = try other.messages()
        let whole = first.flatMap(\.payload)
        let size = 1700
        let count = (whole.count + size - 1) / size
        let sample = first[0]
        second = (0..<count).map { index in
            var message = sample
            message.payload = Array(whole[(index * size)..<min(whole.count, (index + 1) * size)])
            message.headers.removeAll { $0.name == "martlet-chunk" }
            message.headers.append(MessageHeader("martlet-chunk", "\(index)/\(count)"))
            return message
        }
    }

    /// Reads these messages, of which the first is at an offset of the topic.
    @discardableResult
    private func read(
        _ node: TestNode, _ messages: some Collection<IncomingMessage>, partition: Int32 = 0, at offset: Int64 = 0
    ) throws -> Int {
        try node.engine.apply(
            messages.enumerated().map { index, message in
                var message = message
                message.position = PartitionPosition(partition: partition, offset: offset + Int64(index))
                return message
            }, topic: "t"
        ).applied
    }

    private func load() throws {
        try maker.makeSnapshot()
        let progress = try #require(try reader.snapshots?.load(partitionCount: 1))
        #expect(progress.isFinished)
    }

    private func expectWhole() throws {
        #expect(try reader.rows("SELECT key, length(value) FROM setting") == ["large|5000"])
        #expect(try reader.chunks() == [])
        #expect(try reader.status().origins.map(\.applied) == [1])
        #expect(try reader.gaps() == [])
    }

    @Test func p201ChunksOfALaterSendInASnapshotReplaceThoseThatWereReadBefore() throws {
        #expect(first.count > 4 && second.count > 2)
        let log = Array(first[..<2]) + second
        try read(reader, log[..<1])
        try read(maker, log[..<4])
        try load()
        #expect(try reader.engine.offsets(topic: "t").map(\.offset) == [4])
        #expect(try read(reader, log[4...], at: 4) == 1)
        try expectWhole()
    }

    @Test func p201ChunksOfAnEarlierSendInASnapshotReplaceNone() throws {
        let log = Array(first[..<3]) + second
        try read(reader, log[..<4])
        try read(maker, log[..<3])
        try load()
        #expect(try reader.chunks().map(\.count) == [second.count])
        #expect(try read(reader, log[4...], at: 4) == 1)
        try expectWhole()
    }

    /// The maker is behind in the partition of the chunks, and ahead in the other one.
    @Test func chunksOfAnEarlierSendReplaceNoneIfTheMakerIsAheadOnlyInAnotherPartition() throws {
        let lab = try SnapshotLab(partitions: 2)
        let maker = try lab.node("maker")
        let reader = try lab.node("reader")
        for node in [maker, reader] { try node.consume() }
        let other = try Lab()
        defer { withExtendedLifetime(other) {} }
        let origin = try other.node("other")
        try origin.write("INSERT INTO setting VALUES ('small', 1)")
        try origin.publish()
        let log = Array(first[..<3]) + second
        try read(reader, log[..<4])
        try read(maker, log[..<3])
        try read(maker, other.messages(), partition: 1)
        try maker.makeSnapshot()
        let progress = try #require(try reader.snapshots?.load(partitionCount: 2))
        #expect(progress.isFinished)
        #expect(try reader.chunks().map(\.count) == [second.count])
        #expect(try read(reader, log[4...], at: 4) == 1)
        #expect(try reader.rows("SELECT key, length(value) FROM setting ORDER BY key") == ["large|5000", "small|1"])
        #expect(try reader.chunks() == [])
        #expect(try reader.gaps() == [])
    }

    /// The reader began in the middle of a transaction, and the snapshot has its beginning.
    @Test func p201ATransactionWhoseLastMissingChunksAreInASnapshotIsApplied() throws {
        try read(reader, first[2...], at: 2)
        try read(maker, first[..<2])
        try load()
        try expectWhole()
    }

    /// The snapshot's offsets may lie behind it, so the topic doesn't bring the transaction.
    @Test func aRefusedChunkOfASnapshotCountsAsMissing() throws {
        let envelope = WireEnvelope(origin: NodeID(UUID()), sequence: 2, chunk: (index: 0, count: 2))
        let engine = reader.engine
        try engine.session.transaction { db, context in
            let intake = Intake(engine.inbound, db, context, topic: "")
            try intake.take(chunkOfSnapshot: envelope, [], isAhead: { _ in true })
            intake.finish()
        }
        #expect(try reader.gaps().flatMap { Array($0) } == [1, 2])
    }
}
