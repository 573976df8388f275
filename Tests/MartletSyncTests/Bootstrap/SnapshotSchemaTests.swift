import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Snapshots made by nodes with another schema.
@Suite struct SnapshotSchemaTests {
    @Test func aLaterSchemaIsMatchedByFormerNamesAndUnknownColumnsWait() throws {
        let lab = try SnapshotLab("CREATE TABLE trip(id INTEGER PRIMARY KEY, name TEXT, budget REAL)")
        let a = try lab.node("a")
        try a.write("INSERT INTO trip(name, budget) VALUES ('old', 1)")
        try exchange([a])
        try a.store.alter(
            sql: """
                ALTER TABLE trip RENAME COLUMN budget TO cost;
                ALTER TABLE trip RENAME TO journey;
                ALTER TABLE journey ADD COLUMN rating INTEGER DEFAULT 3;
                CREATE TABLE ticket(id INTEGER PRIMARY KEY, journey INTEGER REFERENCES journey(id), seat TEXT);
                """)
        _ = try a.store.attach()
        try a.write("INSERT INTO journey(name, cost, rating) VALUES ('new', 2, 5)")
        try a.write("UPDATE journey SET cost = 3 WHERE name = 'new'; UPDATE journey SET rating = 4 WHERE name = 'old'")
        try a.write("INSERT INTO ticket(journey, seat) SELECT id, '12a' FROM journey WHERE name = 'new'")
        try a.write("INSERT INTO ticket(seat) VALUES ('gone'); DELETE FROM ticket WHERE seat = 'gone'")
        try exchange([a])
        try a.makeSnapshot()
        try lab.prune()
        let b = try lab.node("b")
        try b.consume()
        // The columns that b has are there, whichever node inserted the row.
        #expect(try b.rows("SELECT name, budget FROM trip ORDER BY name") == ["new|3.0", "old|1.0"])
        let waiting = try b.pendingMessages()
        #expect(waiting != [])
        // Loading the snapshot again applies nothing twice.
        try b.forgetSnapshots()
        #expect(try b.snapshots?.load(partitionCount: 2)?.isFinished == true)
        #expect(try b.pendingMessages() == waiting)
        try b.store.alter(
            sql: """
                ALTER TABLE trip RENAME COLUMN budget TO cost;
                ALTER TABLE trip RENAME TO journey;
                ALTER TABLE journey ADD COLUMN rating INTEGER DEFAULT 3;
                CREATE TABLE ticket(id INTEGER PRIMARY KEY, journey INTEGER REFERENCES journey(id), seat TEXT);
                """)
        _ = try b.store.attach()
        try b.consume()
        try b.publish()
        try expectBoth(
            a, b,
            are: """
                journey name='new' cost=3.0 rating=5
                journey name='old' cost=1.0 rating=4
                ticket journey=->'new' seat='12a'
                """)
        try expectSame([a, b])
    }

    @Test func aChangeThatIsPendingOnTheMakerIsAppliedByANodeWithItsSchema() throws {
        let lab = try SnapshotLab("CREATE TABLE trip(id INTEGER PRIMARY KEY, name TEXT)")
        let later = "CREATE TABLE trip(id INTEGER PRIMARY KEY, name TEXT, rating INTEGER)"
        let a = try lab.node("a")
        let b = try lab.node("b", schema: later)
        try b.write("INSERT INTO trip(name, rating) VALUES ('rated', 5)")
        try exchange([a, b])
        #expect(try a.pendingMessages().count == 1)
        try a.makeSnapshot()
        try lab.prune()
        let c = try lab.node("c", schema: later)
        try c.consume()
        try expectBoth(b, c, are: "trip name='rated' rating=5")
        try expectSame([b, c])
    }

    @Test func aTransactionWithSomeChunksInASnapshotIsCompletedFromTheTopic() throws {
        let lab = try SnapshotLab("CREATE TABLE trip(id INTEGER PRIMARY KEY, name TEXT)", partitions: 1)
        let a = try lab.node("a") { $0.maxMessageBytes = 1000 }
        let b = try lab.node("b") { $0.applyBatchTransactions = 2 }
        try a.write("INSERT INTO trip(name) VALUES ('\(String(repeating: "long", count: 1000))')")
        try a.publish()
        // Two of its chunks are read.
        b.consumer.step(timeout: .milliseconds(1))
        try b.restart()
        #expect(try b.chunks().count == 2)
        try b.makeSnapshot()
        lab.bus.truncate(partition: 0, upTo: 2)
        let c = try lab.node("c")
        try c.consume()
        #expect(try c.rows("SELECT count(*) FROM trip") == ["1"])
        #expect(try c.chunks() == [])
        try expectSame([a, c])
    }

    /// Pending changes are stored under the origin's newest transaction. A sequence beyond the greatest one must not
    /// stop the node.
    @Test func anOriginWithASequenceBeyondTheGreatestStopsNothing() throws {
        let a = try SnapshotLab("CREATE TABLE setting(key TEXT PRIMARY KEY NOT NULL, value)").node("a")
        var header = WireSnapshotHeader()
        header.hlc = HybridTime(milliseconds: a.engine.now()).rawValue
        header.nodes = [Data(NodeID(UUID()).bytes)]
        var origin = WireSnapshotOrigin()
        origin.node = header.nodes[0]
        origin.applied = .max
        header.origins = [origin]
        var column = WireSnapshotColumn()
        column.name = "key"
        var entity = WireSnapshotEntity()
        entity.name = "later"
        entity.columns = [column]
        header.entities = [entity]
        var row = WireSnapshotRow()
        row.identity = [try WireValue(.text("k"))]
        row.values = row.identity
        row.inserted.hlc = header.hlc
        var contents = WireSnapshotContents()
        contents.rows = [row]
        try a.engine.session.transaction { db, context in
            try SnapshotApplier(engine: a.engine, db: db, context: context, header: header).apply(contents)
        }
        #expect(try a.pendingMessages().map(\.text) == ["unknownSchema: table later"])
        #expect(try a.pendingMessages().map(\.sequence) == [InputBounds.greatest])
    }
}
