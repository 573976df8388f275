import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// A rebuild of a table beside another one that looks like a copy of it: which remote changes the program has missed.
@Suite struct StaleCopyTests {
    private static let item = "(id INTEGER PRIMARY KEY, name TEXT, size INT)"
    private static let schema = """
        CREATE TABLE item\(item);
        INSERT INTO item VALUES (1, 'one', 10), (2, 'two', 20);
        """
    /// In one transaction, so that the program has seen everything.
    private static let rebuild = """
        CREATE TABLE fresh\(item); INSERT INTO fresh SELECT * FROM item;
        DROP TABLE item; ALTER TABLE fresh RENAME TO item
        """
    private static let columns = "id, name, size"

    private func applyRemotely(_ temporary: TemporaryStore, _ sql: String) throws {
        try temporary.store.write(closingWith: TransactionMark(author: TransactionAuthor.sync)) {
            try $0.execute(sql: sql)
        }
    }

    private func withBackup() throws -> TemporaryStore {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.raw("CREATE TABLE item_backup AS SELECT * FROM item")
        #expect(try temporary.changes().isEmpty)
        return temporary
    }

    /// Each case: a remote change, and a local one that is later.
    @Test(arguments: [
        ["INSERT INTO item VALUES (5, 'five', 50)", "DELETE FROM item WHERE id = 5"],
        ["UPDATE item SET size = 50 WHERE id = 1", "UPDATE item SET size = 10 WHERE id = 1"],
        ["DELETE FROM item WHERE id = 1", "INSERT INTO item VALUES (1, 'one', 10)"],
        ["UPDATE item SET id = 7 WHERE id = 1", "UPDATE item SET id = 1 WHERE id = 7"],
        ["INSERT INTO item VALUES (5, 'five', 50)", "UPDATE item SET size = 51 WHERE id = 5"],
        ["UPDATE item SET size = 50 WHERE id = 1", "UPDATE item SET name = 'edited' WHERE id = 1"],
    ])
    func p191aRebuildBesideABackupUndoesNoLaterLocalChange(_ changes: [String]) throws {
        let temporary = try withBackup()
        try applyRemotely(temporary, changes[0])
        try temporary.raw(changes[1])
        let history = try temporary.changes()
        let rows = try temporary.lines("SELECT \(Self.columns) FROM item ORDER BY id")
        try temporary.raw(Self.rebuild)
        #expect(try temporary.changes() == history)
        #expect(try temporary.lines("SELECT \(Self.columns) FROM item ORDER BY id") == rows)
    }

    /// The program copies the rows, a remote change comes, and the program puts its copy in place. A local change from
    /// before the copy doesn't make the remote one less unseen. In a file with auto-vacuum, dropping a table moves
    /// the root page of another one.
    @Test(arguments: ["NONE", "FULL", "INCREMENTAL"])
    func p191aRemoteChangeDuringTheCopyingIsKeptAfterALocalOne(autoVacuum: String) throws {
        let temporary = try TemporaryStore("PRAGMA auto_vacuum = \(autoVacuum); \(Self.schema)")
        try temporary.raw("CREATE TABLE fresh\(Self.item)")
        #expect(try temporary.changes().isEmpty)
        try temporary.raw("UPDATE item SET size = 11 WHERE id = 1; INSERT INTO item VALUES (3, 'three', 30)")
        try temporary.raw("INSERT INTO fresh SELECT * FROM item")
        try applyRemotely(
            temporary,
            """
            UPDATE item SET size = 12 WHERE id = 1; DELETE FROM item WHERE id = 3;
            INSERT INTO item VALUES (4, 'four', 40)
            """)
        try temporary.raw("UPDATE item SET name = 'edited' WHERE id = 4")
        let history = try temporary.changes()
        try temporary.raw("DROP TABLE item; ALTER TABLE fresh RENAME TO item")
        #expect(try temporary.changes() == history)
        #expect(
            try temporary.lines("SELECT \(Self.columns) FROM item ORDER BY id") == [
                #"1|"one"|12"#, #"2|"two"|20"#, #"4|"edited"|40"#,
            ])
    }

    /// `VACUUM` moves the root page of the table that the program is filling.
    @Test func p191aRemoteChangeDuringTheCopyingIsKeptAfterAVacuum() throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.raw("CREATE TABLE fresh\(Self.item); INSERT INTO fresh SELECT * FROM item")
        #expect(try temporary.changes().isEmpty)
        let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'fresh'"
        let page = try temporary.lines(root)
        try applyRemotely(temporary, "UPDATE item SET size = 12 WHERE id = 1; DELETE FROM item WHERE id = 2")
        let history = try temporary.changes()
        try temporary.run(.shell, "VACUUM")
        #expect(try temporary.lines(root) != page)
        #expect(try temporary.changes() == history)
        try temporary.raw("DROP TABLE item; ALTER TABLE fresh RENAME TO item")
        #expect(try temporary.changes() == history)
        #expect(try temporary.lines("SELECT \(Self.columns) FROM item") == [#"1|"one"|12"#])
    }

    /// In a file with auto-vacuum, a table that was there all along doesn't become another one by getting the root page
    /// of a dropped one.
    @Test func aBackupWhoseRootPageMovesIsNoRenamedTable() throws {
        let temporary = try TemporaryStore("PRAGMA auto_vacuum = INCREMENTAL; \(Self.schema)")
        try temporary.raw("CREATE TABLE item_backup\(Self.item); INSERT INTO item_backup SELECT * FROM item")
        #expect(try temporary.changes().isEmpty)
        let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'item_backup'"
        let page = try temporary.lines(root)
        try temporary.raw("DROP TABLE item")
        #expect(try temporary.lines(root) != page)
        _ = try temporary.store.closeForeignTransactions()
        #expect(try temporary.store.lostEntities().map(\.name) == ["item"])
    }

    /// The table that was dropped beside the rebuild is not the copy that looks like the rebuilt one, which is still
    /// there. What the rows held when that copy was made is no longer known.
    @Test func aRebuildBesideABackupAndADroppedTableKeepsTheValuesOfTheProgram() throws {
        let temporary = try withBackup()
        try temporary.raw("UPDATE item SET name = 'edited' WHERE id = 1; CREATE TABLE scratch(id INTEGER)")
        #expect(try temporary.changes().count == 1)
        try temporary.store.deleteHistory(through: try #require(try temporary.store.lastToken()))
        try applyRemotely(temporary, "UPDATE item SET size = 60 WHERE id = 2")
        #expect(try temporary.changes().count == 1)
        try temporary.raw(
            """
            CREATE TABLE fresh\(Self.item); INSERT INTO fresh SELECT id, name, size * 2 FROM item;
            DROP TABLE item; ALTER TABLE fresh RENAME TO item; DROP TABLE scratch
            """)
        _ = try temporary.store.closeForeignTransactions()
        #expect(
            try temporary.lines("SELECT \(Self.columns) FROM item ORDER BY id") == [#"1|"edited"|20"#, #"2|"two"|120"#])
    }

    /// The same for a table without an integer key, of which remote changes delete a row and give another one a new
    /// key.
    @Test func p192remoteDeletesAreKeptInATableWithoutAnIntegerKey() throws {
        let item = "(code TEXT PRIMARY KEY NOT NULL, size INT)"
        let temporary = try TemporaryStore(
            "CREATE TABLE item\(item); INSERT INTO item VALUES ('a', 1), ('b', 2), ('c', 3)")
        try temporary.raw("CREATE TABLE fresh\(item); INSERT INTO fresh SELECT * FROM item")
        #expect(try temporary.changes().isEmpty)
        try applyRemotely(
            temporary,
            """
            DELETE FROM item WHERE code = 'a'; UPDATE item SET code = 'd' WHERE code = 'b';
            UPDATE item SET size = 4 WHERE code = 'c'
            """)
        let history = try temporary.changes()
        try temporary.raw("DROP TABLE item; ALTER TABLE fresh RENAME TO item")
        #expect(try temporary.changes() == history)
        #expect(try temporary.lines("SELECT code, size FROM item ORDER BY code") == [#""c"|4"#, #""d"|2"#])
    }
}
