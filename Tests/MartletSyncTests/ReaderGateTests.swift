import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Synchronization
import Testing

/// Programs read first and then write in one transaction. SQLite refuses the write if another connection has committed
/// in between, whatever the busy timeout.
@Suite struct ReaderGateTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.path("a.sqlite")
        let store = try Store.create(path: path)
        try store.write {
            try $0.execute(sql: "CREATE TABLE item(id INTEGER PRIMARY KEY, n INT); INSERT INTO item VALUES (1, 1)")
        }
        _ = try store.attach()
    }

    /// Reads, creates a file to report that, waits for a line, and writes.
    private static let program = """
        import sqlite3, sys
        program = sqlite3.connect(sys.argv[1], timeout=20, isolation_level=None)
        program.execute("BEGIN")
        program.execute("SELECT n FROM item").fetchall()
        open(sys.argv[1] + ".reading", "w").close()
        sys.stdin.readline()
        if sys.argv[2] == "writes":
            program.execute("UPDATE item SET n = n + 1")
        program.execute("COMMIT")
        """

    private func reader(writes: Bool) async throws -> RunningProgram {
        let program = try RunningProgram("python3", ["-c", Self.program, path, writes ? "writes" : "reads"])
        try await eventually("a program reads") { FileManager.default.fileExists(atPath: path + ".reading") }
        return program
    }

    private func engine(patience: Duration, _ instant: @escaping @Sendable () -> ContinuousClock.Instant = { .now })
        throws
        -> SyncEngine
    {
        var configuration = SyncConfiguration()
        configuration.readerPatience = patience
        return try SyncEngine(path: path, configuration: configuration, instant: instant)
    }

    @Test func p108AProgramThatReadsBeforeItWritesIsNotOvertaken() async throws {
        // The gate reads the time after each look.
        let counter = Counter()
        let engine = try engine(patience: .seconds(100)) {
            counter.count.add(1, ordering: .relaxed)
            return .now
        }
        let program = try await reader(writes: true)
        let hasWritten = Flag()
        let before = counter.count.load(ordering: .relaxed)
        let thread = Thread {
            try? engine.session.write { try Meta.set($0, "p108", 1) }
            hasWritten.value.store(true, ordering: .relaxed)
        }
        thread.start()
        try await eventually("the engine waits, or has written") {
            hasWritten.isSet || counter.count.load(ordering: .relaxed) > before + 20
        }
        #expect(!hasWritten.isSet)
        program.write("\n")
        _ = try program.finish()
        try await eventually("the engine writes") { hasWritten.isSet }
        #expect(try engine.session.read { try Meta.integer($0, "p108") } == 1)
    }

    @Test func p108TheEngineDoesNotWaitForALongReader() async throws {
        let engine = try engine(patience: .milliseconds(50))
        let program = try await reader(writes: false)
        for number in 1...3 { try engine.session.write { try Meta.set($0, "p108", number) } }
        #expect(try engine.session.read { try Meta.integer($0, "p108") } == 3)
        program.write("\n")
        _ = try program.finish()
    }

    private final class Counter: Sendable {
        let count = Atomic(0)
    }

    private final class Flag: Sendable {
        let value = Atomic(false)
        var isSet: Bool { value.load(ordering: .relaxed) }
    }
}
