import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// The connection below the session: positions need nothing of what stamps and applies.
@Suite struct WriterConnectionTests {
    private let store: TemporaryStore
    private let connection: WriterConnection

    init() throws {
        store = try TemporaryStore()
        let database = try Connection.open(path: store.path, configuration: .init(), role: .applier)
        try database.write { try SyncSchema.ensure($0, maxMessageBytes: 1000) }
        connection = WriterConnection(
            path: store.path, database, node: NodeID(UUID()), readers: ReaderGate(path: store.path, limit: .zero),
            now: { 7 }, instant: { ContinuousClock.now })
    }

    @Test func positionsAreReadAndWrittenWithoutASession() throws {
        defer { try? connection.database.close() }
        let positions = TopicPositions(connection, topic: "t")
        try positions.reset(to: [PartitionPosition(partition: 2, offset: 40)], forgetsOwn: true)
        #expect(try positions.all() == [PartitionPosition(partition: 2, offset: 40)])
        let own = OwnCount(connection)
        #expect(try own.isUnderWay())
        try own.confirm(through: 3)
        #expect(try own.confirmed() == 3)
        let progress = PublishProgress(connection)
        try progress.acknowledge(through: 5)
        #expect(try progress.acknowledged() == 5)
        #expect(try !SnapshotPlace.isAwaited(connection))
        try WantedOffsets.add([2: 50], connection)
        #expect(try SnapshotPlace.isAwaited(connection))
        #expect(try connection.read(WantedOffsets.since) == 7)
    }

    @Test func aWriteThatFailsLeavesNothingAndReleasesTheLock() throws {
        defer { try? connection.database.close() }
        #expect(throws: StoreError.self) {
            try connection.write { db in
                try Meta.set(db, SyncMeta.acknowledged, 5)
                try db.execute(sql: "INSERT INTO nowhere VALUES (1)")
            }
        }
        #expect(try PublishProgress(connection).acknowledged() == 0)
        try PublishProgress(connection).acknowledge(through: 6)
        #expect(try PublishProgress(connection).acknowledged() == 6)
    }
}
