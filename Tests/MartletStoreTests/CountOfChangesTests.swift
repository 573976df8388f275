import Foundation
import MartletStore
import MartletTestSupport
import Testing

/// The change counts that SQLite reports to a program while the capture triggers write too, as
/// docs/tutorials/python.md states them.
@Suite struct CountOfChangesTests {
    private func temporary() throws -> TemporaryStore {
        try TemporaryStore(
            """
            CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT UNIQUE, size INT);
            INSERT INTO item VALUES (1, 'one', 10), (2, 'two', 20);
            """)
    }

    @Test func p61countsOfOneStatementAreRightAndTheTotalIncludesTheTriggersRows() throws {
        let temporary = try temporary()
        let lines = try ForeignProgram.python(
            """
            import sqlite3, sys
            connection = sqlite3.connect(sys.argv[1], timeout=20)
            def tell(cursor):
                own = connection.execute("SELECT changes(), last_insert_rowid()").fetchone()
                print(cursor.rowcount, cursor.lastrowid, *own)
            before = connection.total_changes
            tell(connection.execute("INSERT INTO item(id, name, size) VALUES (7, 'seven', 1)"))
            total = connection.total_changes - before
            print(connection.execute("SELECT total_changes()").fetchone()[0] == connection.total_changes)
            tell(connection.execute("UPDATE item SET size = size + 1"))
            tell(connection.execute("DELETE FROM item WHERE id < 3"))
            print(connection.execute("INSERT INTO item(name) VALUES ('eight') RETURNING id, name").fetchall())
            print("more than one" if total > 1 else total)
            connection.commit()
            """, [temporary.path]
        ).split(separator: "\n").map(String.init)
        #expect(
            lines == [
                "1 7 1 7", "True", "3 7 3 7", "2 7 2 7", "[(8, 'eight')]", "more than one",
            ])
        #expect(try temporary.lines("SELECT id, name FROM item ORDER BY id") == ["7|\"seven\"", "8|\"eight\""])
        // The total without Martlet.
        let without = try TemporaryStore(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT UNIQUE, size INT)", attach: nil)
        let sum = try ForeignProgram.python(
            """
            import sqlite3, sys
            connection = sqlite3.connect(sys.argv[1], timeout=20)
            connection.execute("INSERT INTO item VALUES (1, 'one', 1)")
            print(connection.total_changes)
            """, [without.path])
        #expect(sum.trimmingCharacters(in: .whitespacesAndNewlines) == "1")
    }
}
