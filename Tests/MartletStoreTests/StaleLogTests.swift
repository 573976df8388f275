import Foundation
import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// A write-ahead log next to a file that it doesn't belong to.
@Suite struct StaleLogTests {
    private let folder: TemporaryFolder
    private var path: String { folder.path("store.db") }

    /// Files of one store: `backup` has ten rows; `crashed` is from the crash of its machine, with 2,060 rows, and only
    /// `crashed-wal` has the newest changes.
    init() throws {
        folder = try TemporaryFolder()
        let live = folder.path("live.db")
        try ForeignProgram.shell.run("CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT UNIQUE)", on: live)
        var configuration = StoreConfiguration()
        configuration.walAutocheckpointPages = 1_000_000
        let store = try Store.create(path: live, configuration: configuration)
        defer { try? store.close() }
        _ = try store.attach(.init())
        func insert(_ count: Int) throws {
            try store.write { db in
                for _ in 0..<count { try db.execute(sql: "INSERT INTO item(name) VALUES (hex(randomblob(40)))") }
            }
        }
        func checkpoint(_ mode: String) throws {
            try ForeignProgram.shell.run("PRAGMA wal_checkpoint(\(mode))", on: live)
        }
        func copy(as name: String) throws {
            // In another process: this one would release all its locks on the file when it closes it.
            _ = try ForeignProgram.launch("cp", [live, folder.path(name)], input: "")
            _ = try ForeignProgram.launch("cp", [live + "-wal", folder.path(name + "-wal")], input: "")
        }
        try insert(10)
        try checkpoint("TRUNCATE")
        try copy(as: "backup")
        try insert(2000)
        try checkpoint("TRUNCATE")
        try insert(50)
        try store.write { db in try db.execute(sql: "UPDATE item SET name = 'first' WHERE id = 1") }
        try copy(as: "crashed")
        try checkpoint("PASSIVE")
        try copy(as: "checkpointed")
    }

    /// Copies a file to `path`, next to the log of another file that was last written an hour ago.
    private func restore(_ file: String, log: String) throws {
        try FileManager.default.copyItem(atPath: folder.path(log), toPath: path + "-wal")
        try age(path + "-wal")
        try FileManager.default.copyItem(atPath: folder.path(file), toPath: path)
    }

    /// Sets the modification date of the file to an hour ago.
    private func age(_ file: String) throws {
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -3600)], ofItemAtPath: file)
    }

    private func expect(rows: Int) throws {
        let store = try Store(path: path)
        defer { try? store.close() }
        #expect(try store.database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM item") } == rows)
        #expect(try store.database.read { try String.fetchOne($0, sql: "PRAGMA integrity_check") } == "ok")
        #expect(try store.audit().isClean)
    }

    @Test func p32openingARestoredFileFailsUntilTheStaleLogIsMovedAway() throws {
        try restore("backup", log: "crashed-wal")
        let before = try ["", "-wal"].map { try Data(contentsOf: URL(fileURLWithPath: path + $0)) }
        let error = try #require(throws: StoreError.self) { try Store(path: path) }
        #expect(error.code == .corrupt)
        #expect(error.message.contains("\(path)-wal"))
        #expect(error.hint.contains("Move"))
        #expect(try ["", "-wal"].map { try Data(contentsOf: URL(fileURLWithPath: path + $0)) } == before)
        // Follow the hint of the error.
        for suffix in ["-wal", "-shm"] {
            try FileManager.default.moveItem(atPath: path + suffix, toPath: folder.path("aside") + suffix)
        }
        try expect(rows: 10)
    }

    @Test func openingRecoversTheLogOfACrashDespiteALaterFileDate() throws {
        try restore("crashed", log: "crashed-wal")
        #expect(!StaleLog.isApplied(path + "-wal", to: path))
        try expect(rows: 2060)
    }

    @Test func openingAcceptsACheckpointedLog() throws {
        try restore("checkpointed", log: "checkpointed-wal")
        #expect(try WriteAheadLog(path + "-wal").pages.count > 10)
        #expect(StaleLog.isApplied(path + "-wal", to: path))
        try expect(rows: 2060)
    }

    @Test func openingIgnoresAnInvalidLogAsSQLiteDoes() throws {
        try Data((0..<9000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
            .write(to: URL(fileURLWithPath: folder.path("noise")))
        try restore("backup", log: "noise")
        try expect(rows: 10)
    }

    @Test func aRowThatViolatesAConstraintDoesNotMakeTheLogStale() throws {
        try ForeignProgram.shell.run(
            """
            PRAGMA journal_mode = WAL; CREATE TABLE item(name TEXT NOT NULL CHECK (name <> 'bad'));
            PRAGMA wal_checkpoint(TRUNCATE); PRAGMA ignore_check_constraints = 1; INSERT INTO item VALUES ('bad');
            .shell cp \(folder.path("live.db")).odd \(path)
            .shell cp \(folder.path("live.db")).odd-wal \(path)-wal
            """, on: folder.path("live.db") + ".odd")
        try age(path + "-wal")
        #expect(!StaleLog.isApplied(path + "-wal", to: path))
        try StaleLog.check(path)
    }

    /// A path may contain characters with a special meaning in a URI.
    @Test func openingFindsAStaleLogInAFolderOfAnyName() throws {
        let odd = folder.path("100% of #1?")
        try FileManager.default.createDirectory(atPath: odd, withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: folder.path("crashed-wal"), toPath: odd + "/a b.db-wal")
        try age(odd + "/a b.db-wal")
        try FileManager.default.copyItem(atPath: folder.path("backup"), toPath: odd + "/a b.db")
        #expect(throws: StoreError.self) { try Store(path: odd + "/a b.db") }
    }
}
