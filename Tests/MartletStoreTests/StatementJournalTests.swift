import Foundation
import GRDB
import MartletStore
import MartletTestSupport
import Testing

@Suite struct StatementJournalTests {
    /// A statement that changes more than 16 pages must not make the rest of its transaction write to a temporary file.
    @Test func largeStatementsDoNotWriteTheirJournalToAFile() async {
        await #expect(processExitsWith: .success) {
            let directory = try TemporaryDirectory()
            let store = try Store.create(path: directory.path("s.sqlite"))
            try store.write { db in
                try db.execute(sql: "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)")
            }
            _ = try store.attach(AttachRequest())
            try store.write { db in
                let insert = try PreparedStatement(db, "INSERT INTO item VALUES (?1, 'n' || ?1)")
                for id in 0..<4_000 {
                    insert.bind(1, Int64(id))
                    try insert.run()
                }
            }
            try store.write { db in
                try db.execute(sql: "UPDATE item SET name = 'm' || id")
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
}
