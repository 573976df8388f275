import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// Statements that conflict on a unique key and displace no row.
@Suite struct ConflictClauseTests {
    private static let schema = ReplaceTests.schema

    @Test(arguments: ForeignProgram.allCases)
    func p26ignoredAndUpsertedRowsDisplaceNothing(_ program: ForeignProgram) throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.run(
            program,
            """
            INSERT OR IGNORE INTO item VALUES (9, 'a', 5, 5, NULL);
            UPDATE OR IGNORE item SET code = 'b' WHERE id = 1;
            INSERT INTO item VALUES (8, 'a', 6, 6, NULL) ON CONFLICT DO NOTHING;
            INSERT INTO item VALUES (8, 'a', 6, 6, NULL) ON CONFLICT(code) DO UPDATE SET note = 'again';
            INSERT INTO item VALUES (8, 'a', 6, 6, NULL) ON CONFLICT(code) DO UPDATE SET note = 'again';
            """)
        #expect(try temporary.changes() == [#"update item#1 note="again""#])
    }

    @Test func p26notesOfIgnoredRowsDoNotAffectLaterStatements() throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.raw(
            """
            INSERT OR IGNORE INTO item VALUES (9, 'a', 1, 2, NULL);
            INSERT OR IGNORE INTO item VALUES (9, 'c', 1, 2, NULL);
            UPDATE item SET id = 11 WHERE id = 1;
            DELETE FROM item WHERE id = 2;
            INSERT INTO item VALUES (4, 'd', 4, 4, NULL);
            """)
        #expect(
            try temporary.changes() == [
                "update item#11", "delete item#2", #"insert item#4 box=4 code="d" note=null place=4"#,
            ])
    }

    @Test func p26notesOfIgnoredRowsDoNotPileUp() throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.raw(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
            INSERT OR IGNORE INTO item SELECT 9, 'a', 1, 2, NULL FROM n;
            """)
        let count = try temporary.lines("SELECT count(*) FROM _martlet_replaced")
        #expect(Int(count[0]).map { $0 <= 110 } == true)
        #expect(try temporary.changes().isEmpty)
    }

    @Test func aTransactionThatSQLiteRollsBackLeavesNoChanges() throws {
        let temporary = try TemporaryStore(Self.schema)
        let before = try temporary.lines("SELECT id FROM item")
        #expect(throws: StoreError.self) {
            try temporary.store.write(author: "me") { db in
                try db.execute(sql: "INSERT INTO item VALUES (4, 'd', 4, 4, NULL)")
                // SQLite rolls back by itself, as it also does when the disk is full.
                try? db.execute(sql: "INSERT OR ROLLBACK INTO item VALUES (5, 'a', 5, 5, NULL)")
                try db.execute(sql: "INSERT INTO item VALUES (6, 'f', 6, 6, NULL)")
            }
        }
        #expect(try temporary.lines("SELECT id FROM item") == before)
        #expect(try temporary.changes().isEmpty)
    }

    @Test(arguments: [true, false]) func aPreparedStatementWritesNothingAfterARollback(isMadeBefore: Bool) throws {
        let temporary = try TemporaryStore(Self.schema)
        let before = try temporary.lines("SELECT id FROM item")
        var refusal: StoreError?
        // Released at the end, like a statement that a program keeps.
        var made: PreparedStatement?
        defer { made = nil }
        #expect(throws: StoreError.self) {
            try temporary.store.write(author: "me") { db in
                func make() throws -> PreparedStatement {
                    try PreparedStatement(db, "INSERT INTO item VALUES (?1, ?2, ?1, ?1, NULL) RETURNING id")
                }
                made = isMadeBefore ? try make() : nil
                if let made {
                    made.bind(1, 4)
                    made.bind(2, text: "d")
                    // Not stepped to its end.
                    #expect(try made.step())
                }
                try? db.execute(sql: "INSERT OR ROLLBACK INTO item VALUES (5, 'a', 5, 5, NULL)")
                let insert = try made ?? make()
                insert.bind(1, 6)
                insert.bind(2, text: "f")
                do { try insert.run() } catch let error as StoreError { refusal = error }
                // Reading is allowed.
                let read = try PreparedStatement(db, "SELECT count(*) FROM item")
                #expect(try read.first { $0.integer(0) } == Int64(before.count))
            }
        }
        #expect(refusal?.message.contains("outside of a transaction") == true)
        #expect(refusal?.sqliteCode == 4)
        #expect(try temporary.lines("SELECT id FROM item") == before)
        #expect(try temporary.changes().isEmpty)
        // The connection still works.
        try temporary.store.write { try $0.execute(sql: "INSERT INTO item VALUES (7, 'g', 7, 7, NULL)") }
        #expect(try temporary.lines("SELECT id FROM item WHERE id = 7") == ["7"])
    }

    @Test func p26abortedStatementsLeaveNoChanges() throws {
        let temporary = try TemporaryStore(Self.schema)
        let connection = try temporary.rawConnection()
        try connection.write { db in
            try db.execute(sql: "INSERT INTO item VALUES (4, 'd', 4, 4, NULL)")
            #expect(throws: DatabaseError.self) {
                try db.execute(sql: "INSERT INTO item VALUES (5, 'e', 5, 5, NULL), (6, 'a', 6, 6, NULL)")
            }
            #expect(throws: DatabaseError.self) {
                try db.execute(sql: "INSERT OR FAIL INTO item VALUES (7, 'f', 7, 7, NULL), (8, 'a', 8, 8, NULL)")
            }
            try db.inSavepoint {
                try db.execute(sql: "REPLACE INTO item VALUES (20, 'b', 20, 20, NULL)")
                return .rollback
            }
            try db.execute(sql: "UPDATE item SET note = 'n' WHERE id = 1")
        }
        #expect(
            try temporary.changes() == [
                #"insert item#4 box=4 code="d" note=null place=4"#, #"insert item#7 box=7 code="f" note=null place=7"#,
                #"update item#1 note="n""#,
            ])
    }

    @Test func p26oneStatementMayDisplaceAtEveryRow() throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.raw(
            "REPLACE INTO item VALUES (11, 'a', 11, 1, NULL), (12, 'b', 11, 1, NULL), (13, 'c', 11, 1, NULL)")
        let changes = try temporary.changes()
        #expect(
            changes.filter { $0.hasPrefix("delete") }.sorted()
                == (["1", "11", "12", "2", "3"].map { "delete item#\($0)" }))
        #expect(try temporary.lines("SELECT id FROM item") == ["13"])
    }

    @Test func p26aUsersTriggerMayWriteToTheSameTable() throws {
        let temporary = try TemporaryStore(
            Self.schema + """
                CREATE TRIGGER more AFTER INSERT ON item WHEN NEW.id < 100 BEGIN
                  REPLACE INTO item VALUES (NEW.id + 100, 'c', NEW.id + 100, 1, NULL);
                END;
                """)
        try temporary.raw("REPLACE INTO item VALUES (9, 'a', 1, 2, NULL)")
        let deleted = try temporary.changes().filter { $0.hasPrefix("delete") }.sorted()
        #expect(deleted == ["delete item#1", "delete item#2", "delete item#3"])
        #expect(try temporary.store.audit().isClean)
    }

    @Test func p26auditFindsRowsThatAUsersBeforeTriggerHid() throws {
        let temporary = try TemporaryStore(
            Self.schema + """
                CREATE TRIGGER before BEFORE INSERT ON item BEGIN
                  UPDATE item SET note = coalesce(note, '') || 'x' WHERE id = 3;
                END;
                """)
        try temporary.raw("REPLACE INTO item VALUES (9, 'a', 1, 2, NULL)")
        _ = try temporary.store.audit()
        let deleted = try temporary.changes().filter { $0.hasPrefix("delete") }.sorted()
        #expect(deleted == ["delete item#1", "delete item#2"])
        #expect(try temporary.store.audit().isClean)
    }
}
