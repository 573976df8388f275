import GRDB
import MartletStore
import MartletTestSupport
import Synchronization
import Testing

/// No other program can write while the triggers are missing.
@Suite struct TriggerInstallationTests {
    /// Lets another connection try to write while `body` runs.
    private static func whileWriting(_ temporary: TemporaryStore, _ body: () throws -> Void) throws -> (
        tried: Int, refused: Int
    ) {
        let other = try temporary.rawConnection(timeout: 0)
        let counts = Mutex((tried: 0, refused: 0))
        let gate = DatabaseFunction("gate", argumentCount: 0) { _ in
            var isRefused = false
            do {
                try other.write { try $0.execute(sql: "INSERT INTO item(name) VALUES ('in between')") }
            } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
                isRefused = true
            }
            counts.withLock { $0 = ($0.tried + 1, $0.refused + (isRefused ? 1 : 0)) }
            return 1
        }
        try temporary.store.database.write { $0.add(function: gate) }
        try body()
        try other.close()
        return counts.withLock { $0 }
    }

    @Test func p27noOtherProgramWritesWhileTriggersAreMissing() throws {
        let temporary = try TemporaryStore("CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, size INT)")
        let counts = try Self.whileWriting(temporary) {
            try temporary.store.alter(
                sql: "SELECT gate(); ALTER TABLE item DROP COLUMN size; SELECT gate(); "
                    + "ALTER TABLE item ADD COLUMN x; SELECT gate()")
        }
        #expect(counts == (3, 3))
        try temporary.raw("INSERT INTO item(name) VALUES ('after')")
        #expect(try temporary.changes() == [#"insert item#1 name="after" x=null"#])
    }

    @Test func p27noOtherProgramWritesBetweenTheRowCountAndTheTriggers() throws {
        let temporary = try TemporaryStore(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT); INSERT INTO item VALUES (1, 'one')", attach: nil)
        // `attach` runs in this kind of transaction, which excludes other writers from its first statement on.
        let counts = try Self.whileWriting(temporary) {
            try temporary.store.write { try $0.execute(sql: "SELECT gate()") }
        }
        #expect(counts == (1, 1))
    }

    @Test func p27attachCountsOrLogsEveryRowOfAConcurrentWriter() async throws {
        let temporary = try TemporaryStore("CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT)", attach: nil)
        let writer = try RunningProgram("python3", ["-c", Self.writer, temporary.path])
        try await eventually("the first row of the writer") {
            try temporary.lines("SELECT count(*) FROM item") != ["0"]
        }
        let report = try temporary.store.attach()
        for index in 0..<5 { try temporary.store.alter(sql: "ALTER TABLE item ADD COLUMN x\(index)") }
        for index in 0..<5 { try temporary.store.alter(sql: "ALTER TABLE item DROP COLUMN x\(index)") }
        _ = try writer.finish()
        let logged = try temporary.changes().count
        #expect(report.existingRowCount + logged == 600)
        #expect(report.existingRowCount > 0)
        #expect(try temporary.store.audit().isClean)
    }

    private static let writer = """
        import sqlite3, sys
        c = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
        for i in range(600): c.execute("INSERT INTO item(name) VALUES (?)", (str(i),))
        """
}
