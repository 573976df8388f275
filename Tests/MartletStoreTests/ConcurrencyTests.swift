import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// Many writers on one file.
@Suite struct ConcurrencyTests {
    private static let writer = """
        import sqlite3, sys
        c = sqlite3.connect(sys.argv[1], timeout=120, isolation_level=None)
        for i in range(40):
            c.execute("BEGIN IMMEDIATE")
            c.execute("INSERT INTO item(who, n) VALUES (?, ?)", (sys.argv[2], i))
            c.execute("REPLACE INTO slot(id, n) VALUES (?, ?)", (i * 10 + int(sys.argv[2]), i % 7))
            c.execute("COMMIT")
        """

    @Test func fourProgramsAndFourThreadsLoseNoWrites() async throws {
        let configuration = {
            var configuration = StoreConfiguration()
            configuration.busyTimeout = .seconds(120)
            return configuration
        }()
        let temporary = try TemporaryStore(
            """
            CREATE TABLE item(id INTEGER PRIMARY KEY, who TEXT, n INT);
            CREATE TABLE slot(id INTEGER PRIMARY KEY, n INT UNIQUE);
            """, configuration: configuration)
        let programs = try (0..<4).map {
            try RunningProgram("python3", ["-c", Self.writer, temporary.path, String($0)])
        }
        let path = temporary.path
        try await withThrowingTaskGroup(of: Void.self) { group in
            for thread in 0..<4 {
                group.addTask {
                    let store = thread < 2 ? temporary.store : try Store(path: path, configuration: configuration)
                    for index in 0..<40 {
                        try store.write(author: "thread \(thread)") { db in
                            try db.execute(
                                sql: "INSERT INTO item(who, n) VALUES (?, ?)", arguments: ["own \(thread)", index])
                            try db.execute(
                                sql: "REPLACE INTO slot VALUES (?, ?)", arguments: [index * 10 + 4 + thread, index % 7])
                        }
                        if index % 10 == 0 { _ = try store.fetchHistory() }
                    }
                    if thread >= 2 { try store.close() }
                }
            }
            try await group.waitForAll()
        }
        for program in programs { _ = try program.finish() }
        let transactions = try temporary.store.fetchHistory()
        let inserts = transactions.flatMap(\.changes).filter { $0.entity == "item" }
        #expect(inserts.count == 320)
        #expect(transactions.filter { $0.author != nil }.count == 160)
        #expect(
            transactions.filter { $0.author != nil }.allSatisfy { t in
                t.changes.filter { $0.entity == "item" }.count == 1
            })
        // Replaying the history leads to the content of the table.
        var slots: [Int64: Value] = [:]
        for change in transactions.flatMap(\.changes) where change.entity == "slot" {
            let row = try #require(change.row)
            slots[row] = change.kind == .delete ? nil : change.values["n"]
        }
        let held = try await temporary.store.database.read { db in
            try Row.fetchAll(db, sql: "SELECT id, n FROM slot").map { ($0["id"] as Int64, Value.integer($0["n"])) }
        }
        #expect(slots == Dictionary(uniqueKeysWithValues: held))
        #expect(try temporary.store.audit().isClean)
    }
}
