import Foundation
import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// Files that can't be opened or written yield a clear error and lose nothing.
@Suite struct FileErrorTests {
    private func error(_ body: () throws -> Void) -> StoreError? {
        do {
            try body()
            return nil
        } catch {
            return error as? StoreError
        }
    }

    @Test func p35openingAFileThatIsNoStoreFails() throws {
        let folder = try TemporaryFolder()
        #expect(error { _ = try Store(path: folder.path("none.db")) }?.code == .notAStore)
        #expect(error { _ = try Store.create(path: folder.path("no/such/folder.db")) }?.code == .notAStore)
        #expect(!FileManager.default.fileExists(atPath: folder.path("none.db")))
        try Data("This is no database, though it is long enough to have a header of the right size.".utf8)
            .write(to: folder.url.appendingPathComponent("text.db"))
        for body in [
            { _ = try Store(path: folder.path("text.db")) }, { _ = try Store.create(path: folder.path("text.db")) },
        ] {
            let found = try #require(error(body))
            #expect(found.code == .corrupt)
            #expect(!found.hint.isEmpty)
        }
    }

    @Test func p35openingAForeignDatabaseDoesNotChangeIt() throws {
        let folder = try TemporaryFolder()
        try ForeignProgram.shell.run("CREATE TABLE item(id INTEGER PRIMARY KEY)", on: folder.path("store.db"))
        let before = try Data(contentsOf: folder.url.appendingPathComponent("store.db"))
        var reading = StoreConfiguration()
        reading.isReadOnly = true
        for configuration in [StoreConfiguration(), reading] {
            let found = error { _ = try Store(path: folder.path("store.db"), configuration: configuration) }
            #expect(found?.code == .notAStore)
            #expect(found?.hint.contains("martlet attach \(folder.path("store.db"))") == true, "\(found?.hint ?? "")")
        }
        #expect(try Data(contentsOf: folder.url.appendingPathComponent("store.db")) == before)
    }

    @Test func p35openingAStoreOfANewerVersionFails() throws {
        let temporary = try TemporaryStore("CREATE TABLE item(id INTEGER PRIMARY KEY)")
        try temporary.run(.shell, "UPDATE _martlet_meta SET value = 99 WHERE key = 'format'")
        var reading = StoreConfiguration()
        reading.isReadOnly = true
        for configuration in [StoreConfiguration(), reading] {
            let found = try #require(error { _ = try Store(path: temporary.path, configuration: configuration) })
            #expect(found.code == .newerVersion)
            #expect(found.message.contains("99"))
        }
    }

    @Test func openingUpgradesAStoreOfFormat1() throws {
        let temporary = try TemporaryStore("CREATE TABLE item(id BLOB PRIMARY KEY, name TEXT)")
        let triggers = "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'"
        let count = try temporary.lines(triggers)
        try temporary.run(
            .shell,
            """
            DROP TRIGGER _martlet_1_insert_number;
            \(OldFormat.sql(store: 1))
            """)
        let store = try Store(path: temporary.path)
        try store.close()
        #expect(try temporary.lines(triggers) == count)
        #expect(try temporary.store.read { try Meta.integer($0, MetaKey.format) } == 15)
        #expect(try temporary.lines("SELECT DISTINCT added FROM _martlet_columns") == ["0"])
        try temporary.run(.python, "INSERT INTO item VALUES (1, 'a'); INSERT INTO item VALUES (x'01', 'b')")
        #expect(try temporary.changes().count == 2)
    }

    @Test func p35aReadOnlyStoreReadsAndRefusesWrites() throws {
        let temporary = try TemporaryStore("CREATE TABLE item(id INTEGER PRIMARY KEY)")
        try temporary.store.write(author: "me") { try $0.execute(sql: "INSERT INTO item VALUES (1)") }
        try temporary.raw("INSERT INTO item VALUES (2)")
        var reading = StoreConfiguration()
        reading.isReadOnly = true
        let store = try Store(path: temporary.path, configuration: reading)
        #expect(try store.fetchHistory().count == 1)
        #expect(try store.lastToken() != nil)
        #expect(error { try store.write { _ in } }?.code == .readOnly)
        #expect(error { _ = try store.attach() }?.code == .readOnly)
        #expect(error { _ = try store.deleteHistory(before: .now) }?.code == .readOnly)
        try store.close()
        #expect(try temporary.store.fetchHistory().count == 2)
    }

    @Test func p35aFullDiskLosesNothing() throws {
        let temporary = try TemporaryStore("CREATE TABLE item(id INTEGER PRIMARY KEY, v)")
        let pages = try temporary.lines("PRAGMA page_count")[0]
        try temporary.store.database.writeWithoutTransaction { try $0.execute(sql: "PRAGMA max_page_count = \(pages)") }
        let full = try #require(
            error { try temporary.store.write { try $0.execute(sql: "INSERT INTO item VALUES (1, zeroblob(500000))") } }
        )
        #expect(full.code == .diskFull)
        #expect(!full.hint.isEmpty)
        #expect(full.sqliteCode != nil)
        try temporary.store.database.writeWithoutTransaction { try $0.execute(sql: "PRAGMA max_page_count = 1000000") }
        try temporary.store.write { try $0.execute(sql: "INSERT INTO item VALUES (2, 1)") }
        #expect(try temporary.changes() == ["insert item#2 v=1"])
        #expect(try temporary.lines("PRAGMA integrity_check") == [#""ok""#])
    }

    /// SQLite itself doesn't wait: it refuses the switch to a write-ahead log at once.
    @Test func creatingAStoreWaitsForAWriter() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("store.db")
        let other = try DatabaseQueue(path: path)
        try other.writeWithoutTransaction { try $0.execute(sql: "CREATE TABLE item(id INTEGER PRIMARY KEY)") }
        var configuration = StoreConfiguration()
        configuration.busyTimeout = .milliseconds(200)
        try other.inTransaction(.immediate) { db in
            try db.execute(sql: "INSERT INTO item VALUES (1)")
            let began = ContinuousClock.now
            #expect(error { _ = try Store.create(path: path, configuration: configuration) }?.code == .busy)
            #expect(ContinuousClock.now - began >= .milliseconds(200))
            return .commit
        }
        let store = try Store.create(path: path, configuration: configuration)
        #expect(try store.database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM item") } == 1)
    }

    @Test func aHeldLockYieldsARetriableBusyError() throws {
        var configuration = StoreConfiguration()
        configuration.busyTimeout = .milliseconds(20)
        let temporary = try TemporaryStore("CREATE TABLE item(id INTEGER PRIMARY KEY)", configuration: configuration)
        let other = try temporary.rawConnection()
        try other.inTransaction(.immediate) { db in
            let busy = try #require(
                error { try temporary.store.write { try $0.execute(sql: "INSERT INTO item VALUES (1)") } })
            #expect(busy.code == .busy)
            #expect(busy.isRetriable)
            return .commit
        }
        try temporary.store.write { try $0.execute(sql: "INSERT INTO item VALUES (1)") }
        #expect(try temporary.changes() == ["insert item#1"])
    }
}
