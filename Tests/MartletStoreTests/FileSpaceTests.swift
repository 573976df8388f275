import Foundation
import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// Which files can become smaller, and what a slice of that does.
@Suite struct FileSpaceTests {
    private static let schema = "CREATE TABLE item(id INTEGER PRIMARY KEY, data)"

    private func giveBack(_ store: Store, _ count: Int64) throws -> Int64 {
        try store.writeOwnTables { try FileSpace.giveBack($0, atMost: count) }
    }

    @Test func onlyFilesThatMartletCreatesAreShrinkable() throws {
        let own = try TemporaryStore()
        #expect(try own.store.fileSpace().isShrinkable)
        #expect(try own.lines("PRAGMA journal_mode") == [#""wal""#])
        let existing = try TemporaryStore(Self.schema)
        #expect(try !existing.store.fileSpace().isShrinkable)
        #expect(try giveBack(existing.store, 100) == 0)
        // Opened again as a store that may have to be created, it stays what it is.
        let again = try Store.create(path: existing.path)
        #expect(try !again.fileSpace().isShrinkable)
        try again.close()
        let memory = try Store.create(path: ":memory:")
        #expect(try !memory.fileSpace().isShrinkable)
        try memory.close()
    }

    /// As the documentation says.
    @Test func aVacuumMakesAnExistingFileShrinkable() throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.store.write { try $0.execute(sql: "INSERT INTO item VALUES (1, 'one')") }
        let history = try temporary.changes()
        try temporary.run(.shell, "PRAGMA auto_vacuum = 2; VACUUM")
        #expect(try temporary.store.fileSpace().isShrinkable)
        #expect(try temporary.changes() == history)
        try temporary.store.write { try $0.execute(sql: "INSERT INTO item VALUES (2, 'two')") }
        #expect(try temporary.changes() == history + [#"insert item#2 data="two""#])
        #expect(try temporary.store.audit().isClean)
    }

    @Test func aSliceGivesBackSoManyPagesAndChangesNoRow() throws {
        let temporary = try TemporaryStore()
        let store = temporary.store
        // Without an integer key, rows have rowids of SQLite's own.
        try store.write { db in
            try db.execute(sql: "CREATE TABLE page(name TEXT PRIMARY KEY NOT NULL, data)")
            try db.execute(sql: Self.schema)
        }
        _ = try store.attach(.init())
        try store.write { db in
            for id in 0..<400 {
                try db.execute(sql: "INSERT INTO item VALUES (\(id), zeroblob(4000))")
                try db.execute(sql: "INSERT INTO page VALUES ('\(id)', zeroblob(4000))")
            }
        }
        try store.write { try $0.execute(sql: "DELETE FROM item") }
        _ = try store.deleteHistory(through: try #require(try store.lastToken()))
        let rows = try temporary.lines("SELECT rowid, name, hex(data) FROM page ORDER BY rowid")
        let before = try store.fileSpace()
        #expect(before.freePageCount > 800)
        #expect(try giveBack(store, 256) == 256)
        let after = try store.fileSpace()
        #expect(after.freePageCount == before.freePageCount - 256)
        // Pages that only say where others are go too.
        #expect((256...260).contains(before.pageCount - after.pageCount))
        #expect(try giveBack(store, 1 << 40) == after.freePageCount)
        #expect(try giveBack(store, 256) == 0)
        #expect(try temporary.lines("SELECT rowid, name, hex(data) FROM page ORDER BY rowid") == rows)
        #expect(try temporary.lines("PRAGMA integrity_check") == [#""ok""#])
        #expect(try store.audit().isClean)
        try temporary.raw("INSERT INTO item VALUES (7, 'seven')")
        #expect(try temporary.changes() == [#"insert item#7 data="seven""#])
    }
}
