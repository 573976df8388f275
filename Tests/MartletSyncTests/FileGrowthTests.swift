import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// How large a store's file becomes, and how it becomes smaller.
@Suite(.timeLimit(.minutes(5))) struct FileGrowthTests {
    private let lab: Lab
    private let a: TestNode

    init() throws {
        lab = try Lab("CREATE TABLE item(id INTEGER PRIMARY KEY, v INT, data)")
        a = try lab.node("a")
    }

    private func insert(_ count: Int, bytes: Int) throws {
        try a.store.write { db in
            for id in 1...count {
                try db.execute(sql: "INSERT INTO item VALUES (\(id), 0, zeroblob(\(bytes)))")
            }
        }
        try a.publish()
    }

    private func size() throws -> Int64 {
        let size = try FileManager.default.attributesOfItem(atPath: a.path)[.size] as? NSNumber
        return try #require(size).int64Value
    }

    @Test func aHundredThousandUpdatesOfAThousandRowsDoNotFillTheFile() throws {
        try insert(1000, bytes: 60)
        for round in 1...100 {
            try a.store.write { try $0.execute(sql: "UPDATE item SET v = \(round)") }
            try a.publish()
            try a.engine.retainHistory(age: nil, sizeBytes: 512 << 10)
        }
        // Rows, clocks, a history of half a MiB, and its messages. All history and messages would be 10 MiB at least.
        #expect(try a.store.fileSpace().bytes < 5 << 20)
        #expect(try a.store.historySize().transactions > 3)
        #expect(try a.rows("SELECT count(*), min(v) FROM item") == ["1000|100"])
    }

    @Test func othersWriteBetweenTheSlicesThatGiveFreePagesBack() throws {
        try insert(1000, bytes: 4000)
        try a.store.write { try $0.execute(sql: "DELETE FROM item WHERE id > 10") }
        try a.publish()
        _ = try a.engine.retainHistory(age: nil, sizeBytes: 1)
        let before = try a.engine.fileSpace()
        #expect(before.isShrinkable && before.freePageCount > 4 * FreePages.slice)
        let other = try DatabaseQueue(path: a.path)
        var steps = 0
        var failures = 0
        let given = try a.engine.giveBackFreePages(3 * FreePages.slice + 1) {
            steps += 1
            // It would fail at once if the lock were held.
            do {
                try other.write { try $0.execute(sql: "UPDATE item SET v = v + 1 WHERE id = 1") }
            } catch {
                failures += 1
            }
            return false
        }
        try other.close()
        #expect(failures == 0)
        #expect(given == 3 * FreePages.slice + 1)
        // Before each of four slices, and none before the end.
        #expect(steps == 4)
        let after = try a.engine.fileSpace()
        #expect(after.pageCount < before.pageCount - 3 * FreePages.slice + 20)
        a.engine.session.checkpointer.wait()
        #expect(try size() == a.engine.fileSpace().bytes)
        #expect(try a.rows("SELECT count(*), max(v) FROM item") == ["10|4"])
        #expect(try a.rows("PRAGMA integrity_check") == ["ok"])
    }

    @Test func noFurtherPagesAreMovedIntoALogThatAReaderHolds() throws {
        var files = StoreConfiguration.impatient
        files.walAutocheckpointPages = 10
        let b = try lab.node("b", files: files)
        try b.write(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
            INSERT INTO item SELECT i, 0, zeroblob(4000) FROM n
            """)
        try b.publish()
        // These pages follow those that become free, and have to be moved.
        try b.foreignWrite(
            """
            CREATE TABLE filler(data);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
            INSERT INTO filler SELECT zeroblob(4000) FROM n
            """)
        try b.write("DELETE FROM item")
        try b.publish()
        _ = try b.engine.retainHistory(age: nil, sizeBytes: 1)
        #expect(try b.engine.fileSpace().freePageCount > 4 * FreePages.slice)
        let reader = try DatabaseQueue.ofAnotherProgram(b.path)
        try reader.inDatabase { try $0.execute(sql: "BEGIN; SELECT count(*) FROM item") }
        #expect(try b.engine.giveBackFreePages(3 * FreePages.slice) == FreePages.slice)
        try reader.inDatabase { try $0.execute(sql: "COMMIT") }
        try reader.close()
        #expect(try b.engine.giveBackFreePages(3 * FreePages.slice) == 3 * FreePages.slice)
        #expect(try b.rows("PRAGMA integrity_check") == ["ok"])
    }

    @Test func aStoppedAgentGivesNothingBack() throws {
        try insert(1000, bytes: 4000)
        try a.store.write { try $0.execute(sql: "DELETE FROM item") }
        try a.publish()
        _ = try a.engine.retainHistory(age: nil, sizeBytes: 1)
        let before = try a.engine.fileSpace()
        #expect(try a.engine.giveBackFreePages(before.freePageCount, isStopped: { true }) == 0)
        #expect(try a.engine.fileSpace() == before)
    }
}
