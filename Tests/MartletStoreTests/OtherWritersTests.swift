import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// Who could be waiting for the write lock beside the agent's connection.
@Suite struct OtherWritersTests {
    private let store: TemporaryStore
    private let agent: DatabaseQueue
    private let others: OtherWriters

    init() throws {
        store = try TemporaryStore("CREATE TABLE item(id INTEGER PRIMARY KEY)")
        try store.store.close()
        agent = try Self.open(store.path, .applier)
        others = OtherWriters(path: store.path)
    }

    /// A connection that has read: without that, it has no part in the write-ahead log yet.
    private static func open(_ path: String, _ role: Connection.Role) throws -> DatabaseQueue {
        let queue = try Connection.open(path: path, configuration: .init(), role: role)
        _ = try queue.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM item") }
        return queue
    }

    @Test func nobodyElseMayWriteWhileOnlyTheAgentHasTheFileOpen() throws {
        defer { try? agent.close() }
        #expect(!others.exist(besides: 1))
        #expect(others.exist(besides: 0))
    }

    @Test func connectionsThatOnlyReadDontCount() throws {
        defer { try? agent.close() }
        let reader = try Self.open(store.path, .reader)
        #expect(!others.exist(besides: 1))
        try reader.close()
        #expect(!others.exist(besides: 1))
    }

    @Test func anotherConnectionOfTheProcessMayWrite() throws {
        defer { try? agent.close() }
        let app = try DatabaseQueue(path: store.path)
        defer { try? app.close() }
        #expect(others.exist(besides: 1))
    }

    @Test func aProgramThatHasTheFileOpenMayWriteUntilItEnds() throws {
        defer { try? agent.close() }
        let script = """
            import sqlite3, sys
            connection = sqlite3.connect(sys.argv[1])
            connection.execute("SELECT count(*) FROM item").fetchall()
            print("open", flush=True)
            sys.stdin.read()
            connection.close()
            """
        let program = try RunningProgram("python3", ["-c", script, store.path])
        #expect(try program.line() == "open")
        #expect(others.exist(besides: 1))
        _ = try program.finish()
        #expect(!others.exist(besides: 1))
    }

    @Test func aFileThatCantBeExaminedMayHaveOtherWriters() throws {
        defer { try? agent.close() }
        #expect(OtherWriters(path: store.path + "-gone").exist(besides: 1))
    }
}
