import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// What the user's triggers write to untracked tables is right on every node.
@Suite struct DerivedDataTests {
    private static let schema = """
        CREATE TABLE note(id INTEGER PRIMARY KEY, title TEXT, body TEXT);
        CREATE VIRTUAL TABLE note_fts USING fts5(title, body, content='note', content_rowid='id');
        CREATE TRIGGER note_ai AFTER INSERT ON note BEGIN
          INSERT INTO note_fts(rowid, title, body) VALUES (new.id, new.title, new.body);
        END;
        CREATE TRIGGER note_ad AFTER DELETE ON note BEGIN
          INSERT INTO note_fts(note_fts, rowid, title, body) VALUES('delete', old.id, old.title, old.body);
        END;
        CREATE TRIGGER note_au AFTER UPDATE ON note BEGIN
          INSERT INTO note_fts(note_fts, rowid, title, body) VALUES('delete', old.id, old.title, old.body);
          INSERT INTO note_fts(rowid, title, body) VALUES (new.id, new.title, new.body);
        END;
        CREATE VIRTUAL TABLE title_fts USING fts5(title, content='');
        CREATE TRIGGER title_i AFTER INSERT ON note
          BEGIN INSERT INTO title_fts(rowid, title) VALUES (new.id, new.title); END;
        CREATE TRIGGER title_d BEFORE DELETE ON note BEGIN
          INSERT INTO title_fts(title_fts, rowid, title) VALUES ('delete', old.id, old.title);
        END;
        CREATE TRIGGER title_u AFTER UPDATE OF title ON note WHEN old.title IS NOT new.title BEGIN
          INSERT INTO title_fts(title_fts, rowid, title) VALUES ('delete', old.id, old.title);
          INSERT INTO title_fts(rowid, title) VALUES (new.id, new.title);
        END;
        CREATE TABLE tally(what TEXT PRIMARY KEY, n INTEGER NOT NULL);
        CREATE TRIGGER tally_i AFTER INSERT ON note BEGIN
          INSERT OR IGNORE INTO tally VALUES ('note', 0);
          UPDATE tally SET n = n + 1 WHERE what = 'note';
        END;
        CREATE TRIGGER tally_d AFTER DELETE ON note BEGIN UPDATE tally SET n = n - 1 WHERE what = 'note'; END;
        CREATE TABLE high(n INTEGER PRIMARY KEY);
        CREATE TRIGGER tally_high AFTER UPDATE ON tally BEGIN REPLACE INTO high VALUES (new.n); END;
        CREATE TABLE audit(id INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT);
        CREATE TRIGGER audit_i AFTER INSERT ON note BEGIN INSERT INTO audit(what) VALUES ('+' || new.title); END;
        CREATE TRIGGER audit_u AFTER UPDATE ON note
          BEGIN INSERT INTO audit(what) VALUES (old.title || '>' || new.title); END;
        CREATE TRIGGER audit_d AFTER DELETE ON note BEGIN INSERT INTO audit(what) VALUES ('-' || old.title); END;
        CREATE TABLE place(code TEXT PRIMARY KEY NOT NULL, x REAL, y REAL);
        CREATE TABLE place_number(number INTEGER PRIMARY KEY, code TEXT UNIQUE);
        CREATE VIRTUAL TABLE place_tree USING rtree(number, x0, x1, y0, y1);
        CREATE TRIGGER place_i AFTER INSERT ON place BEGIN
          INSERT INTO place_number(code) VALUES (new.code);
          INSERT INTO place_tree SELECT number, new.x, new.x, new.y, new.y FROM place_number WHERE code = new.code;
        END;
        CREATE TRIGGER place_u AFTER UPDATE ON place BEGIN
          UPDATE place_tree SET x0 = new.x, x1 = new.x, y0 = new.y, y1 = new.y
          WHERE number = (SELECT number FROM place_number WHERE code = new.code);
        END;
        CREATE TRIGGER place_d AFTER DELETE ON place BEGIN
          DELETE FROM place_tree WHERE number = (SELECT number FROM place_number WHERE code = old.code);
          DELETE FROM place_number WHERE code = old.code;
        END;
        """

    private static func request(_ tables: String...) -> AttachRequest {
        var request = AttachRequest()
        request.tables = tables
        return request
    }

    private func failures(_ node: TestNode) throws -> [String] {
        try node.store.examineDerived().failures.map { "\($0.trigger) \($0.count)" }
    }

    /// Expects that indexes and counters match the tables.
    private func expectDerived(_ nodes: [TestNode], sourceLocation: SourceLocation = #_sourceLocation) throws {
        for node in nodes {
            func expect(_ sql: String, _ rows: [String]) throws {
                #expect(try node.rows(sql) == rows, "\(sql) on \(node.name)", sourceLocation: sourceLocation)
            }
            let notes = try node.rows("SELECT id, title, body FROM note ORDER BY id")
            try expect("SELECT n FROM tally", ["\(notes.count)"])
            for row in notes {
                let parts = row.split(separator: "|")
                try expect("SELECT rowid FROM note_fts WHERE note_fts MATCH '\(parts[1])'", ["\(parts[0])"])
                try expect("SELECT rowid FROM title_fts WHERE title_fts MATCH '\(parts[1])'", ["\(parts[0])"])
                try expect("SELECT rowid FROM note_fts WHERE note_fts MATCH '\(parts[2])'", ["\(parts[0])"])
            }
            let places = try node.rows("SELECT code, x, y FROM place ORDER BY code")
            try expect(
                "SELECT code, x0, y0 FROM place_tree JOIN place_number USING (number) WHERE x0 > -1000 ORDER BY code",
                places)
            try expect("SELECT count(*) FROM place_tree", ["\(places.count)"])
            try expect("SELECT rtreecheck('main', 'place_tree')", ["ok"])
            try expect("PRAGMA integrity_check", ["ok"])
            try node.foreignWrite(
                """
                INSERT INTO note_fts(note_fts, rank) VALUES('integrity-check', 1);
                INSERT INTO title_fts(title_fts, rank) VALUES('integrity-check', 1);
                """)
        }
    }

    @Test func p40DataDerivedByTriggersIsRightAndEditableOnEveryNode() throws {
        let lab = try SnapshotLab(Self.schema)
        let request = Self.request("note", "place")
        let nodes = try ["a", "b", "c"].map { try lab.node($0, attach: request) }
        try nodes[0].write("INSERT INTO note(title, body) VALUES ('one', 'first'), ('two', 'second')")
        try ForeignProgram.shell.run(
            "INSERT INTO note(title, body) VALUES ('three', 'third'); INSERT INTO place VALUES ('here', 1, 2)",
            on: nodes[1].path)
        try ForeignProgram.python.run(
            "INSERT INTO note(title, body) VALUES ('four', 'fourth'); INSERT INTO place VALUES ('there', 3, 4)",
            on: nodes[2].path)
        try exchange(nodes)
        try expectDerived(nodes)
        // Each node edits and deletes rows of others.
        try ForeignProgram.python.run(
            "UPDATE note SET body = 'dritte' WHERE title = 'three'; UPDATE place SET x = 30 WHERE code = 'there'",
            on: nodes[0].path)
        try ForeignProgram.shell.run(
            "UPDATE note SET title = 'vier' WHERE title = 'four'; DELETE FROM note WHERE title = 'one'",
            on: nodes[1].path)
        try nodes[2].write(
            "UPDATE note SET title = 'zwei', body = 'zweite' WHERE title = 'two'; DELETE FROM place WHERE code = 'here'"
        )
        try exchange(nodes)
        try expectDerived(nodes)
        for node in nodes {
            #expect(
                try node.rows("SELECT title, body FROM note ORDER BY title") == [
                    "three|dritte", "vier|fourth", "zwei|zweite",
                ])
            #expect(try node.rows("SELECT code, x FROM place") == ["there|30.0"])
            #expect(
                try node.rows("SELECT what FROM audit ORDER BY what")
                    == ["+four", "+one", "+three", "+two", "-one", "four>vier", "three>three", "two>zwei"])
        }
        // Concurrent edits of one row: the loser is overwritten, in the index, too.
        try nodes[0].write("UPDATE note SET body = 'apfel' WHERE title = 'zwei'")
        try nodes[1].write("UPDATE note SET body = 'birne' WHERE title = 'zwei'")
        try nodes[2].write("DELETE FROM note WHERE title = 'three'")
        try exchange(nodes)
        try expectDerived(nodes)
        for node in nodes {
            #expect(try node.rows("SELECT count(*) FROM note_fts WHERE note_fts MATCH 'birne'") == ["1"])
            #expect(try node.rows("SELECT count(*) FROM note_fts WHERE note_fts MATCH 'apfel OR dritte'") == ["0"])
        }
        // A late joiner gets all of it with the rows.
        try nodes[0].makeSnapshot()
        try lab.prune()
        let late = try lab.node("late", attach: request)
        try late.consume()
        try late.foreignWrite(
            "UPDATE note SET body = 'kirsche' WHERE title = 'vier'; DELETE FROM note WHERE title = 'zwei'")
        try exchange(nodes + [late])
        try expectDerived(nodes + [late])
        try expectSame(nodes + [late])
        #expect(try late.rows("SELECT max(n) FROM high") == ["2"])
    }

    /// Names and SQL of any kind.
    @Test func p40TriggersOfAnyShapeRun() throws {
        let lab = try Lab(
            """
            CREATE TABLE span(id INTEGER PRIMARY KEY, begin INTEGER, "end" INTEGER, "when" TEXT);
            CREATE TABLE seen(what TEXT);
            CREATE TRIGGER 'on "it"' AFTER INSERT ON span WHEN NEW.begin < NEW."end" -- BEGIN
            BEGIN INSERT INTO seen VALUES ('insert'); END;
            CREATE TRIGGER IF NOT EXISTS main.[a b] /* AFTER DELETE */ AFTER UPDATE OF begin, "when" ON span
              FOR EACH ROW
              WHEN CASE WHEN NEW.begin > 5 THEN 1 ELSE (SELECT count(*) FROM seen WHERE what = 'BEGIN') END BEGIN
              INSERT INTO seen SELECT 'update' WHERE NEW.begin > 5;
              INSERT INTO "seen"(what) VALUES (CASE NEW.id WHEN 1 THEN 'one' ELSE 'other' END);
            END;
            CREATE TRIGGER délété BEFORE DELETE ON "span" BEGIN INSERT INTO seen VALUES ('begin delete end;'); END;
            """, request: Self.request("span"))
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        for sql in [
            "INSERT INTO span VALUES (1, 1, 2, 'x')", "INSERT INTO span VALUES (2, 2, 1, 'x')",
            "UPDATE span SET begin = 9",
            "UPDATE span SET begin = 3", "UPDATE span SET \"end\" = 3", "DELETE FROM span WHERE \"end\" = 3",
        ] { try a.write(sql) }
        try exchange([a, b])
        // Each node assigns its own integer keys.
        let seen = try a.rows("SELECT what FROM seen ORDER BY what").map { $0 == "one" ? "other" : $0 }.sorted()
        #expect(seen == ["begin delete end;", "begin delete end;", "insert", "other", "other", "update", "update"])
        #expect(try b.rows("SELECT what FROM seen ORDER BY what").map { $0 == "one" ? "other" : $0 }.sorted() == seen)
    }

    /// Such triggers write to tracked tables, may refuse a row, or need a function that only a program has.
    @Test func p40TriggersThatCannotRunEverywhereAreReported() throws {
        let lab = try Lab(
            """
            CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE log(name TEXT);
            CREATE TABLE cache(name TEXT UNIQUE ON CONFLICT ROLLBACK);
            CREATE TABLE total(what TEXT PRIMARY KEY NOT NULL, n INTEGER);
            INSERT INTO total VALUES ('item', 0);
            CREATE TRIGGER both AFTER INSERT ON item BEGIN
              INSERT INTO log VALUES (new.name); UPDATE total SET n = 7 WHERE what = 'other';
            END;
            CREATE TRIGGER refusing BEFORE INSERT ON item WHEN new.name = 'bad' BEGIN
              INSERT INTO log VALUES ('bad'); SELECT RAISE(ABORT, 'bad');
            END;
            CREATE TRIGGER checking BEFORE INSERT ON item WHEN new.name = 'worse'
              BEGIN SELECT RAISE(ABORT, 'worse'); END;
            CREATE TRIGGER caching AFTER INSERT ON item BEGIN INSERT INTO cache VALUES (new.name); END;
            CREATE TRIGGER calling AFTER DELETE ON item BEGIN INSERT INTO log VALUES (of_the_program(old.name)); END;
            CREATE TRIGGER counting AFTER UPDATE ON item BEGIN UPDATE total SET n = n + 1 WHERE what = 'item'; END;
            CREATE TRIGGER fine AFTER UPDATE ON item BEGIN INSERT INTO log VALUES (new.name); END;
            CREATE TRIGGER elsewhere AFTER INSERT ON log WHEN 0
              BEGIN INSERT INTO total VALUES ('log', of_the_program(1)); END;
            """, request: Self.request("item", "total"))
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        let warnings = try a.store.attach(lab.request).warnings
        func warning(_ trigger: String) -> String? { warnings.first { $0.hasPrefix("Trigger \(trigger) of table") } }
        for (trigger, text) in [
            ("both", "to total, which Martlet tracks, and to log"), ("refusing", "RAISE"), ("caching", "ROLLBACK"),
            ("calling", "no such function: of_the_program"), ("counting", "total.n"),
            ("elsewhere", "no such function: of_the_program"),
        ] { #expect(warning(trigger)?.contains(text) == true, "\(trigger) in \(warnings)") }
        #expect(warnings.count == 6, "\(warnings)")
        // None of these keeps a row out, and neither does a trigger that only refuses.
        try a.foreignWrite("DROP TRIGGER checking; DROP TRIGGER calling; DROP TRIGGER elsewhere")
        try a.foreignWrite(
            "INSERT INTO item(name) VALUES ('worse'), ('good'); UPDATE item SET name = 'better' WHERE name = 'good'")
        try exchange([a, b])
        #expect(try b.rows("SELECT name FROM item ORDER BY name") == ["better", "worse"])
        #expect(try b.rows("SELECT name FROM log") == ["better"])
        #expect(try b.rows("SELECT n FROM total") == ["1"])
        #expect(try a.rows("SELECT name FROM log ORDER BY rowid") == ["worse", "good", "better"])
        #expect(try failures(b) == [])
    }

    /// A failure of a trigger keeps no row out, and is reported.
    @Test func p40ATriggerThatFailsKeepsNoRowOut() throws {
        let lab = try Lab(
            """
            CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT UNIQUE);
            CREATE TABLE mirror(name TEXT UNIQUE);
            CREATE TRIGGER mirroring AFTER INSERT ON item BEGIN INSERT INTO mirror VALUES (new.name); END;
            CREATE TRIGGER forgetting AFTER DELETE ON item BEGIN DELETE FROM mirror WHERE name = old.name; END;
            """, request: Self.request("item"))
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try b.write("INSERT INTO mirror VALUES ('x')")
        try a.write("INSERT INTO item(name) VALUES ('w'), ('x'), ('y')")
        try exchange([a, b])
        #expect(try b.rows("SELECT name FROM item ORDER BY name") == ["w", "x", "y"])
        #expect(try b.rows("SELECT name FROM mirror ORDER BY name") == ["w", "x", "y"])
        #expect(try failures(b) == ["mirroring 1"])
        let facts = try b.store.examineDerived()
        #expect(facts.failures.first?.message.contains("mirror.name") == true)
        try b.restart()
        #expect(try b.store.examineDerived().failures.isEmpty)
    }

    @Test func p40AnIndexThatEarlierVersionsLeftBehindStopsNothing() throws {
        let lab = try Lab(Self.schema, request: Self.request("note", "place"))
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO note(title, body) VALUES ('one', 'first'), ('two', 'second')")
        try exchange([a, b])
        // Earlier versions wrote rows without anything that triggers derive.
        try b.foreignWrite("INSERT INTO note_fts(note_fts) VALUES('delete-all')")
        let broken = try b.store.examineDerived().indexes.filter { $0.problem != nil }
        #expect(broken.map(\.name) == ["note_fts"])
        for title in ["uno", "due", "tre"] { try a.write("UPDATE note SET title = '\(title)' WHERE body = 'first'") }
        try a.write("DELETE FROM note WHERE body = 'second'")
        try exchange([a, b])
        #expect(try b.rows("SELECT title FROM note") == ["tre"])
        let rebuild = try #require(broken.first?.rebuild)
        try b.foreignWrite(rebuild)
        let rebuilt = try b.store.examineDerived().indexes
        #expect(rebuilt.contains { $0.name == "note_fts" } && rebuilt.allSatisfy { $0.problem == nil })
        try a.write("UPDATE note SET title = 'quattro'")
        try exchange([a, b])
        try expectDerived([a, b])
    }

    /// Triggers are created, dropped and changed while an agent runs.
    @Test func p40ChangesOfTriggersTakeEffectWhileAnAgentRuns() throws {
        let lab = try Lab(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE log(id INTEGER PRIMARY KEY, name TEXT)",
            request: Self.request("item"))
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        func insert(_ name: String) throws {
            try a.write("INSERT INTO item(name) VALUES ('\(name)')")
            try exchange([a, b])
        }
        try insert("none")
        try b.foreignWrite(
            "CREATE TRIGGER logging AFTER INSERT ON item BEGIN INSERT INTO log(name) VALUES (new.name); END")
        try insert("one")
        #expect(try b.rows("SELECT name FROM log") == ["one"])
        try b.foreignWrite(
            """
            DROP TRIGGER logging;
            CREATE TRIGGER logging AFTER INSERT ON item BEGIN INSERT INTO log(name) VALUES (upper(new.name)); END
            """)
        try insert("two")
        #expect(try b.rows("SELECT name FROM log") == ["one", "TWO"])
        // The table that it writes to is tracked from now on: what a writes there would arrive anyway.
        var request = AttachRequest()
        request.tables = ["log"]
        _ = try b.store.attach(request)
        try insert("three")
        #expect(try b.rows("SELECT name FROM log") == ["one", "TWO"])
        try b.foreignWrite("DROP TRIGGER logging; DROP TABLE log")
        try insert("four")
        #expect(try b.rows("SELECT count(*) FROM item") == ["5"])
        #expect(try failures(b) == [])
    }

    /// Rows that are displaced and come back, and references that are set later.
    @Test func p40PendingRowsLeaveTheIndexAndComeBack() throws {
        let lab = try Lab(
            """
            CREATE TABLE badge(id INTEGER PRIMARY KEY, code TEXT UNIQUE, owner TEXT);
            CREATE TABLE tag(id INTEGER PRIMARY KEY, badge INTEGER REFERENCES badge(id), text TEXT);
            CREATE VIRTUAL TABLE badge_fts USING fts5(owner, content='badge', content_rowid='id');
            CREATE TRIGGER badge_ai AFTER INSERT ON badge
              BEGIN INSERT INTO badge_fts(rowid, owner) VALUES (new.id, new.owner); END;
            CREATE TRIGGER badge_ad AFTER DELETE ON badge BEGIN
              INSERT INTO badge_fts(badge_fts, rowid, owner) VALUES('delete', old.id, old.owner);
            END;
            CREATE TRIGGER badge_au AFTER UPDATE ON badge BEGIN
              INSERT INTO badge_fts(badge_fts, rowid, owner) VALUES('delete', old.id, old.owner);
              INSERT INTO badge_fts(rowid, owner) VALUES (new.id, new.owner);
            END;
            CREATE TABLE tagged(badge INTEGER, n INTEGER);
            CREATE TRIGGER tag_au AFTER UPDATE OF badge ON tag WHEN new.badge IS NOT NULL
              BEGIN INSERT INTO tagged VALUES (new.badge, 1); END;
            """, partitions: 2, request: Self.request("badge", "tag"))
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO badge(code, owner) VALUES ('B7', 'ann'); INSERT INTO tag(badge, text) VALUES (1, 'x')")
        try b.write("INSERT INTO badge(code, owner) VALUES ('B7', 'ben')")
        try exchange([a, b])
        func owners(_ node: TestNode) throws -> [String] {
            try node.foreignWrite("INSERT INTO badge_fts(badge_fts, rank) VALUES('integrity-check', 1)")
            return try node.rows("SELECT owner FROM badge_fts WHERE badge_fts MATCH 'ann OR ben'")
        }
        #expect(try owners(a) == ["ben"])
        #expect(try owners(b) == ["ben"])
        try b.write("DELETE FROM badge WHERE owner = 'ben'")
        try exchange([a, b])
        #expect(try owners(a) == ["ann"])
        #expect(try owners(b) == ["ann"])
        // The tag's reference was set when the row was back.
        for node in [a, b] {
            #expect(try node.rows("SELECT count(*) FROM tagged JOIN badge ON badge = id") == ["1"])
            #expect(try failures(node) == [])
        }
    }

    /// A table declared with ON CONFLICT REPLACE replaces no row during a merge, also where triggers derive data from
    /// its rows.
    @Test func p40ATableDeclaredToReplaceReplacesNoRowOfOthers() throws {
        let lab = try Lab(
            """
            CREATE TABLE badge(id INTEGER PRIMARY KEY, code TEXT UNIQUE ON CONFLICT REPLACE, owner TEXT);
            CREATE TABLE log(owner TEXT);
            CREATE TRIGGER logging AFTER INSERT ON badge BEGIN INSERT INTO log VALUES (new.owner); END;
            CREATE TABLE last(code TEXT PRIMARY KEY, owner TEXT);
            CREATE TRIGGER keeping AFTER INSERT ON badge
              BEGIN INSERT OR REPLACE INTO last VALUES (new.code, new.owner); END;
            """, request: Self.request("badge"))
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        #expect(try a.store.attach(lab.request).warnings.map { $0.prefix(28) } == ["Trigger keeping of table bad"])
        try a.write("INSERT INTO badge(code, owner) VALUES ('B7', 'ann')")
        try b.write("INSERT INTO badge(code, owner) VALUES ('B7', 'ben')")
        try exchange([a, b])
        for node in [a, b] {
            #expect(try node.rows("SELECT owner FROM badge") == ["ben"])
            #expect(try node.parked() == ["unique"])
        }
        #expect(try a.rows("SELECT owner FROM log") == ["ann", "ben"])
    }

    /// A table from which triggers derive nothing takes the fast path.
    @Test func p40TablesWithoutSuchTriggersTakeTheFastPath() throws {
        let lab = try Lab(
            Self.schema + "CREATE TABLE bare(id INTEGER PRIMARY KEY, name TEXT);",
            request: Self.request("note", "place", "bare"))
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO bare(name) VALUES ('x'); INSERT INTO note(title) VALUES ('t')")
        try exchange([a, b])
        #expect(
            try b.engine.session.transaction { _, context in
                context.catalog.entities.filter { context.table($0).isPlain }.map(\.name)
            } == ["bare"])
    }
}
