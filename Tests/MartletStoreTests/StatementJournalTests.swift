import Foundation
import GRDB
import MartletStore
import MartletTestSupport
import Testing

@Suite struct StatementJournalTests {
    /// A statement that changes more than 16 pages must not make the rest of its transaction write to a temporary file.
    @Test func statementsOfThirtyPagesDoNotWriteTheirJournalToAFile() async {
        await #expect(processExitsWith: .success) {
            let directory = try TemporaryDirectory()
            let store = try StatementJournalTests.filled(directory)
            try store.write { db in
                // Four rows fill a page.
                try db.execute(sql: "UPDATE item SET body = upper(body) WHERE id < 84")
                let files = "/proc/self/fd"
                let open = try FileManager.default.contentsOfDirectory(atPath: files).compactMap {
                    try? FileManager.default.destinationOfSymbolicLink(atPath: "\(files)/\($0)")
                }
                // SQLite's names for temporary files.
                guard !open.contains(where: { $0.contains("etilqs_") }) else { exit(2) }
                guard open.contains(where: { $0.hasSuffix("s.sqlite-wal") }) else { exit(3) }
            }
        }
    }

    /// The journal moves to a file while it is written.
    @Test(arguments: [84, 120, 124, 128, 132, 400, 4_000]) func statementsOfAnySizeCanBeUndone(rows: Int) throws {
        let directory = try TemporaryDirectory()
        let store = try Self.filled(directory)
        try store.write { db in
            try db.execute(sql: "UPDATE item SET body = upper(body) WHERE id < \(rows)")
            // The last row fails, which undoes the statement.
            #expect(throws: DatabaseError.self) {
                try db.execute(sql: "UPDATE item SET body = nullif(body || '!', 'x!') WHERE id < \(rows) OR id = 9999")
            }
        }
        let read = "SELECT count(*) FILTER (WHERE body = upper(body)) || '|' || count(*) FROM item"
        #expect(try store.read { try String.fetchOne($0, sql: read) } == "\(rows)|4001")
    }

    private static func filled(_ directory: TemporaryDirectory) throws -> Store {
        let store = try Store.create(path: directory.path("s.sqlite"))
        try store.write { try $0.execute(sql: "CREATE TABLE item(id INTEGER PRIMARY KEY, body TEXT NOT NULL)") }
        _ = try store.attach(AttachRequest())
        try store.write { db in
            let insert = try PreparedStatement(db, "INSERT INTO item VALUES (?1, hex(zeroblob(480)) || 'a')")
            for id in 0..<4_000 {
                insert.bind(1, Int64(id))
                try insert.run()
            }
            try db.execute(sql: "INSERT INTO item VALUES (9999, 'x')")
        }
        return store
    }
}
