import Foundation
import GRDB
import MartletStore
import MartletTestSupport
import Synchronization
import Testing

/// Which tables `attach` tracks, and how it identifies their rows.
@Suite struct AttachTests {
    private func error(_ body: () throws -> Void) -> StoreError? {
        do {
            try body()
            return nil
        } catch {
            return error as? StoreError
        }
    }

    /// Martlet could never apply a remote row to such a table.
    @Test func p43attachRefusesATableThatNeedsAFunctionOfItsProgram() throws {
        let temporary = try TemporaryStore("CREATE TABLE plain(id INTEGER PRIMARY KEY, word)", attach: nil)
        let program = try DatabaseQueue(path: temporary.path)
        try program.write { db in
            db.add(function: DatabaseFunction("stem", argumentCount: 1, pure: true) { $0[0] })
            try db.execute(
                sql: """
                    CREATE TABLE stemmed(id INTEGER PRIMARY KEY, word); CREATE INDEX stems ON stemmed(stem(word));
                    CREATE TABLE checked(id INTEGER PRIMARY KEY, word CHECK (stem(word) <> ''));
                    CREATE TRIGGER heard AFTER INSERT ON plain BEGIN SELECT stem(NEW.word); END;
                    """)
        }
        try program.close()
        let report = try temporary.store.attach()
        #expect(report.attached.map(\.name) == ["plain"])
        #expect(report.refused.map(\.table) == ["checked", "stemmed"])
        #expect(report.refused.allSatisfy { $0.error.code == .notTrackable && $0.error.message.contains("stem") })
    }

    /// SQLite takes a name in double quotes that isn't a column's for a text.
    @Test func attachTracksTablesWithTextsInDoubleQuotes() throws {
        let temporary = try TemporaryStore("CREATE TABLE plain(id INTEGER PRIMARY KEY)", attach: nil)
        try temporary.run(
            .shell,
            """
            CREATE TABLE task(id INTEGER PRIMARY KEY, state TEXT DEFAULT "open", CHECK (state <> "bad"));
            CREATE UNIQUE INDEX open_task ON task(id) WHERE state = "open";
            """)
        let report = try temporary.store.attach()
        #expect(report.attached.map(\.name).sorted() == ["plain", "task"], "\(report.refused)")
        try temporary.run(.shell, "INSERT INTO task(id) VALUES (1); UPDATE task SET state = 'done'")
        #expect(try temporary.changes() == [#"insert task#1 state="open""#, #"update task#1 state="done""#])
    }

    @Test func attachRefusesUntrackableTablesWithAReasonAndARemedy() throws {
        let temporary = try TemporaryStore(
            """
            CREATE TABLE bare(a, b); CREATE VIRTUAL TABLE found USING fts5(text);
            CREATE VIEW seen AS SELECT * FROM bare;
            CREATE TABLE item(id INTEGER PRIMARY KEY, code TEXT, g AS (code) STORED UNIQUE);
            """, attach: nil)
        let report = try temporary.store.attach()
        #expect(report.attached.map(\.name) == ["item"])
        #expect(Set(report.refused.map(\.table)) == ["bare", "found"])
        #expect(
            report.refused.allSatisfy {
                $0.error.code == .notTrackable && !$0.error.message.isEmpty && !$0.error.hint.isEmpty
            })
        for (table, code) in [
            ("bare", StoreError.Code.notTrackable), ("found", .notTrackable), ("SEEN", .notTrackable),
            ("none", .invalidArgument),
        ] {
            var request = AttachRequest()
            request.tables = [table]
            #expect(error { _ = try temporary.store.attach(request) }?.code == code, "\(table)")
        }
        for (columns, code) in [(["a"], StoreError.Code.notTrackable), (["zzz"], .invalidArgument)] {
            var request = AttachRequest()
            request.identities = ["bare": columns]
            let found = try #require(error { _ = try temporary.store.attach(request) })
            #expect(found.code == code)
            #expect(!found.hint.isEmpty)
        }
        #expect(try temporary.store.trackedEntities().map(\.name) == ["item"])
    }

    @Test func attachRefusesATableWithMoreColumnsThanTheHistoryCanHold() throws {
        func columns(_ count: Int) -> String { (1..<count).map { "c\($0)" }.joined(separator: ", ") }
        let temporary = try TemporaryStore(
            """
            CREATE TABLE widest(id INTEGER PRIMARY KEY, \(columns(1999)));
            CREATE TABLE wide(id INTEGER PRIMARY KEY, \(columns(1990)));
            """, attach: nil)
        let report = try temporary.store.attach()
        #expect(report.attached.map(\.name) == ["wide"])
        #expect(report.refused.map(\.table) == ["widest"])
        let refused = try #require(report.refused.first).error
        #expect(refused.code == .notTrackable && refused.message.contains("1999 columns"))
        try temporary.raw("INSERT INTO wide(c1, c1989) VALUES (1, 2)")
        #expect(try temporary.changes().count == 1)
    }

    @Test func theRemedyForATableWithoutAKeyWorks() throws {
        let temporary = try TemporaryStore(
            "CREATE TABLE \"my bare\"(a, b); INSERT INTO \"my bare\" VALUES (1, 2)", attach: nil)
        var request = AttachRequest()
        request.identities = ["my bare": ["A"]]
        let hint = try #require(error { _ = try temporary.store.attach(request) }).hint
        try temporary.run(.shell, String(hint.dropFirst("Run: ".count)))
        #expect(try temporary.store.attach(request).attached.map(\.identity) == [.columns(["a"])])
        try temporary.raw("UPDATE \"my bare\" SET b = 3")
        #expect(try temporary.changes() == ["update my bare b=3"])
    }

    @Test func p162aTrackedTableAdoptsANewUniquePolicy() throws {
        let temporary = try TemporaryStore("CREATE TABLE seat(id INTEGER PRIMARY KEY, place TEXT UNIQUE)")
        var request = AttachRequest()
        request.uniquePolicies = ["SEAT": .keepOldest]
        #expect(try temporary.store.attach(request).changed == ["seat"])
        #expect(try temporary.store.trackedEntities().map(\.uniquePolicy) == [.keepOldest])
        #expect(try temporary.store.attach(request).alreadyTracked == ["seat"])
        #expect(try temporary.store.attach().alreadyTracked == ["seat"])
        #expect(try temporary.store.trackedEntities().map(\.uniquePolicy) == [.keepOldest])
    }

    @Test func attachingTwiceChangesNothing() throws {
        let temporary = try TemporaryStore(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, v); INSERT INTO item VALUES (1, 1)")
        let before = try temporary.store.identities(of: "item")
        let report = try temporary.store.attach()
        #expect(report.attached.isEmpty)
        #expect(report.alreadyTracked == ["item"])
        #expect(before.count == 1)
        #expect(try temporary.store.identities(of: "item") == before)
        try temporary.raw("UPDATE item SET v = 2")
        #expect(try temporary.changes() == ["update item#1 v=2"])
    }

    @Test func copiesAttachedWithTheSameSeedAgreeOnTheirIDs() throws {
        let schema = "CREATE TABLE item(id INTEGER PRIMARY KEY, v); INSERT INTO item VALUES (1, 1), (7, 2)"
        var request = AttachRequest()
        request.seed = UUID()
        func ids(_ request: AttachRequest) throws -> [StableID?] {
            let temporary = try TemporaryStore(schema, attach: request)
            try temporary.raw("UPDATE item SET v = 5; INSERT INTO item VALUES (8, 1)")
            return try temporary.store.fetchHistory().flatMap(\.changes).map(\.identity)
        }
        let (a, b, c) = (try ids(request), try ids(request), try ids(.init()))
        #expect(a[0...1] == b[0...1])
        #expect(a[2] != b[2])
        #expect(a[0] != c[0])
        #expect(Set(a).count == 3)
    }

    @Test func attachLogsExistingRowsOnRequest() throws {
        var request = AttachRequest()
        request.logsExistingRows = true
        let temporary = try TemporaryStore(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, v); INSERT INTO item VALUES (1, 1), (7, 2)", attach: request)
        try temporary.raw("DELETE FROM item WHERE id = 7")
        #expect(try temporary.changes() == ["insert item#1 v=1", "insert item#7 v=2", "delete item#7"])
        let changes = try temporary.store.fetchHistory().flatMap(\.changes)
        #expect(changes[1].identity == changes[2].identity)
        #expect(try temporary.store.audit().isClean)
    }

    @Test func aLaterAttachLogsUnpublishedRows() throws {
        let temporary = try TemporaryStore(
            """
            CREATE TABLE item(id INTEGER PRIMARY KEY, v);
            CREATE TABLE setting(key TEXT PRIMARY KEY NOT NULL, value) WITHOUT ROWID;
            CREATE TABLE tag(name TEXT PRIMARY KEY NOT NULL, id INTEGER);
            INSERT INTO item VALUES (1, 1), (7, 2);
            INSERT INTO setting VALUES ('a', x'00ff'), ('b', NULL);
            INSERT INTO tag VALUES ('red', 5);
            """)
        try temporary.raw("INSERT INTO item VALUES (8, 3); INSERT INTO setting VALUES ('c', 1.5)")
        var request = AttachRequest()
        request.logsExistingRows = true
        #expect(try temporary.store.attach(request).unpublishedRowCount == 0)
        request.logsUnpublishedRows = true
        let before = try temporary.changes().count
        let report = try temporary.store.attach(request)
        #expect(report.unpublishedRowCount == 5)
        #expect(report.alreadyTracked.count == 3)
        let logged = try temporary.changes().dropFirst(before)
        #expect(logged.count == 5)
        #expect(logged.prefix(2) == ["insert item#1 v=1", "insert item#7 v=2"])
        #expect(try temporary.store.attach(request).unpublishedRowCount == 0)
        #expect(try temporary.store.audit().isClean)
    }

    @Test func attachReportsProgressOnALargeTable() throws {
        let temporary = try TemporaryStore(
            """
            CREATE TABLE item(id INTEGER PRIMARY KEY, v);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
            INSERT INTO item SELECT i, i FROM n;
            """, attach: nil)
        var request = AttachRequest()
        request.logsExistingRows = true
        let told = Mutex<[AttachProgress]>([])
        let report = try temporary.store.attach(request) { progress in told.withLock { $0.append(progress) } }
        #expect(report.existingRowCount == 2500)
        let all = told.withLock { $0 }
        #expect(all.map(\.step) == [.naming, .naming, .naming, .logging, .logging, .logging])
        #expect(all.map(\.rows) == [0, 1000, 2000, 0, 1000, 2000])
        #expect(all.allSatisfy { $0.rowCount == 2500 && $0.table == "item" })
        #expect(try temporary.changes().count == 2500)
    }

    @Test func aForeignKeyInAnIdentityIsAReference() throws {
        let temporary = try TemporaryStore(
            """
            CREATE TABLE item(id INTEGER PRIMARY KEY, v);
            CREATE TABLE tag(item INT REFERENCES item(id), name TEXT, PRIMARY KEY(item, name)) WITHOUT ROWID;
            """)
        try temporary.raw("INSERT INTO item VALUES (1, 1); INSERT INTO tag VALUES (1, 'x')")
        let changes = try temporary.store.fetchHistory().flatMap(\.changes)
        let item = try #require(changes[0].identity)
        // The reference can't be resolved before the row's stable ID is stored.
        let tag = try changes[1].identity?.values()
        #expect(tag == nil || tag == [.reference(Reference(entity: "item", identity: item)), .text("x")])
    }
}

extension AttachTests {
    /// A user's program provides the tokenizer, and no other program has it.
    @Test func p129AttachSurvivesAFullTextIndexWithACustomTokenizer() throws {
        let temporary = try TemporaryStore()
        try temporary.run(
            .python,
            """
            CREATE TABLE note(id INTEGER PRIMARY KEY, body TEXT);
            CREATE VIRTUAL TABLE search USING fts5(body, content='note', content_rowid='id', tokenize='porter');
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = replace(sql, 'porter', 'mine') WHERE name = 'search';
            """)
        let report = try temporary.store.attach()
        #expect(report.attached.map(\.name) == ["note"])
        #expect(report.refused.map(\.table) == ["search"])
        #expect(report.refused.first?.error.code == .notTrackable)
        var request = AttachRequest()
        request.tables = ["Search"]
        #expect { try temporary.store.attach(request) } throws: { ($0 as? StoreError)?.code == .notTrackable }
        try temporary.run(.python, "INSERT INTO note(body) VALUES ('x')")
        #expect(try temporary.changes() == [#"insert note#1 body="x""#])
    }

    /// Rails, Django's generic keys and old schemas declare no foreign keys.
    @Test func p109AttachWarnsOfAReferenceWithoutAForeignKey() throws {
        let temporary = try TemporaryStore()
        try temporary.store.write {
            try $0.execute(
                sql: """
                    CREATE TABLE blog_posts(id INTEGER PRIMARY KEY, title TEXT);
                    CREATE TABLE city(code TEXT PRIMARY KEY NOT NULL);
                    CREATE TABLE categories(id INTEGER PRIMARY KEY, name TEXT);
                    CREATE TABLE comments(id INTEGER PRIMARY KEY, post_id INTEGER,
                     category_id INTEGER REFERENCES categories(id), city_id INTEGER, external_id INTEGER,
                     CategoryID INT);
                    """)
        }
        let report = try temporary.store.attach()
        #expect(report.warnings.count == 2)
        #expect(
            report.warnings.contains { $0.contains("Column post_id of table comments") && $0.contains("blog_posts") })
        #expect(
            report.warnings.contains { $0.contains("Column CategoryID of table comments") && $0.contains("categories") }
        )
    }

    @Test func p118AttachWarnsOfAReferenceToAnUntrackedTable() throws {
        let temporary = try TemporaryStore()
        try temporary.store.write {
            try $0.execute(
                sql: """
                    CREATE TABLE parent(id INTEGER PRIMARY KEY, code TEXT UNIQUE);
                    CREATE TABLE city(code TEXT PRIMARY KEY NOT NULL);
                    CREATE TABLE kid(id INTEGER PRIMARY KEY, p INTEGER REFERENCES Parent,
                     q INTEGER REFERENCES parent(ID), code TEXT REFERENCES parent(code), city TEXT REFERENCES city);
                    """)
        }
        var request = AttachRequest()
        request.tables = ["kid"]
        let report = try temporary.store.attach(request)
        #expect(report.warnings.count == 2, "\(report.warnings)")
        for column in ["p", "q"] {
            #expect(
                report.warnings.contains {
                    $0.contains("Column \(column) of table kid refers to parent, which is not tracked")
                })
        }
        request = AttachRequest()
        #expect(try temporary.store.attach(request).warnings == [])
    }
}
