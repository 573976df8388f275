import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// Rows that are inserted, deleted and moved in every way that SQLite has.
@Suite struct RowTests {
    @Test func p30theHistoryLogsCascades() throws {
        let temporary = try TemporaryStore(
            """
            CREATE TABLE parent(id INTEGER PRIMARY KEY);
            CREATE TABLE child(id INTEGER PRIMARY KEY,
             parent INT REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE);
            CREATE TABLE note(id INTEGER PRIMARY KEY, parent INT REFERENCES parent ON DELETE SET NULL);
            INSERT INTO parent VALUES (1), (2); INSERT INTO child VALUES (1, 1), (2, 2); INSERT INTO note VALUES (1, 2);
            """)
        try temporary.run(
            .python, "PRAGMA foreign_keys = ON; UPDATE parent SET id = 5 WHERE id = 1; DELETE FROM parent WHERE id = 2")
        #expect(
            Set(try temporary.changes()) == [
                "update parent#5", "update child#1 parent=5", "delete parent#2", "delete child#2",
                "update note#1 parent=null",
            ])
        #expect(try temporary.store.audit().isClean)
    }

    @Test func p30aRowKeepsItsHiddenIDWhenItsKeyChanges() throws {
        let temporary = try TemporaryStore(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, v); INSERT INTO item VALUES (1, 'a'), (2, 'b')")
        try temporary.raw(
            """
            INSERT INTO item VALUES (3, 'c'); UPDATE item SET id = 10 WHERE id = 3;
            UPDATE item SET v = 'd' WHERE id = 10; UPDATE item SET id = 11 WHERE id = 1;
            INSERT INTO item VALUES (1, 'new'); UPDATE item SET v = 'e' WHERE id = 11;
            DELETE FROM item WHERE id = 11; DELETE FROM item WHERE id = 10;
            UPDATE OR REPLACE item SET id = 2 WHERE id = 1; UPDATE item SET v = 'f' WHERE id = 2;
            INSERT INTO item VALUES (10, 'g');
            """)
        let changes = try temporary.store.fetchHistory().flatMap(\.changes)
        let names = try changes.map { try #require($0.identity, "\($0.line)") }
        // insert 3, move 10, update 10, move 11, insert 1, update 11, delete 11, delete 10, delete 2, move 2, update 2,
        // insert 10
        #expect(changes.count == 12)
        #expect(names[0] == names[1] && names[0] == names[2] && names[0] == names[7])
        #expect(names[3] == names[5] && names[3] == names[6])
        #expect(names[4] == names[9] && names[4] == names[10])
        #expect(Set(names).count == 5)
        #expect(try temporary.store.fetchHistory().flatMap(\.changes).map(\.identity) == names)
        #expect(try temporary.store.audit().isClean)
    }

    @Test func p30aReusedRowidGetsANewID() throws {
        let temporary = try TemporaryStore("CREATE TABLE item(id INTEGER PRIMARY KEY, v)")
        try temporary.raw(
            "INSERT INTO item(v) VALUES (1); DELETE FROM item; INSERT INTO item(v) VALUES (2); UPDATE item SET v = 3")
        let changes = try temporary.store.fetchHistory().flatMap(\.changes)
        #expect(changes.map(\.row) == [1, 1, 1, 1])
        #expect(changes[0].identity == changes[1].identity)
        #expect(changes[2].identity == changes[3].identity)
        #expect(changes[0].identity != changes[2].identity)
    }

    @Test func aRowReplacedUnderItsOwnKeyKeepsItsID() throws {
        let temporary = try TemporaryStore(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, v); INSERT INTO item VALUES (1, 1)")
        try temporary.raw(
            "REPLACE INTO item VALUES (1, 2); INSERT INTO item VALUES (2, 1); REPLACE INTO item VALUES (2, 2)")
        let changes = try temporary.store.fetchHistory().flatMap(\.changes)
        #expect(changes.map(\.kind) == [.insert, .insert, .insert])
        #expect(changes[1].identity == changes[2].identity)
        #expect(changes[0].identity != changes[1].identity)
        #expect(try temporary.store.identities(of: "item")[1] != nil)
    }

    @Test func p30vacuumChangesNothing() throws {
        let temporary = try TemporaryStore(
            """
            CREATE TABLE named(name TEXT PRIMARY KEY, v); CREATE TABLE kept(id INTEGER PRIMARY KEY, v);
            INSERT INTO named VALUES ('a', 1), ('b', 2), ('c', 3); INSERT INTO kept VALUES (5, 1), (9, 2);
            """)
        try temporary.raw("DELETE FROM named WHERE name = 'a'; DELETE FROM kept WHERE id = 5")
        try temporary.run(.shell, "VACUUM")
        #expect(try temporary.store.audit().isClean)
        try temporary.raw("UPDATE named SET v = 9 WHERE name = 'c'; UPDATE kept SET v = 9")
        #expect(
            try temporary.changes() == [
                #"delete named name="a""#, "delete kept#5", "update named v=9", "update kept#9 v=9",
            ])
        #expect(try temporary.store.fetchHistory().flatMap(\.changes)[2].identity == StableID(values: [.text("c")]))
    }

    @Test func p30theHistoryLogsWritesThroughViews() throws {
        let temporary = try TemporaryStore(
            """
            CREATE TABLE item(id INTEGER PRIMARY KEY, v); CREATE VIEW all_items AS SELECT * FROM item;
            CREATE TRIGGER i INSTEAD OF INSERT ON all_items BEGIN INSERT INTO item VALUES (NEW.id, NEW.v); END;
            CREATE TRIGGER d INSTEAD OF DELETE ON all_items BEGIN DELETE FROM item WHERE id = OLD.id; END;
            """)
        try temporary.run(.shell, "INSERT INTO all_items VALUES (1, 2); DELETE FROM all_items")
        #expect(try temporary.changes() == ["insert item#1 v=2", "delete item#1"])
    }

    @Test func p30generatedColumnsAreNotCaptured() throws {
        let temporary = try TemporaryStore(
            "CREATE TABLE item(a INT, twice INT AS (a * 2) STORED, id INTEGER PRIMARY KEY, b INT, half AS (a / 2))")
        try temporary.raw("INSERT INTO item(a, b) VALUES (1, 2); UPDATE item SET a = 3")
        #expect(try temporary.changes() == ["insert item#1 a=1 b=2", "update item#1 a=3"])
    }

    private static let names = [
        "with space", "quo\"te", "it's", "semi;colon", "dot.ted", "select", "värde", "名前", "`tick`", "[bracket]", "new",
        "old", "t",
        "c1", "r", "k", "e", "--comment", "\"", "\"\u{301}x", "😀", "n", "_martlet", "percent%_", "a\nVALUES (b",
    ]

    @Test func p30triggersCaptureTablesAndColumnsOfAnyName() throws {
        let columns = Self.names.map(\.quotedName).joined(separator: ", ")
        let sql = Self.names.map { name in
            """
            CREATE TABLE \(name.quotedName)(\(name == "id" ? "" : "id INTEGER PRIMARY KEY, ")\(columns),
             UNIQUE("t", "new"));
            CREATE TABLE \((name + " 2").quotedName)(\(columns), PRIMARY KEY(\(name.quotedName), "old"), UNIQUE("r"));
            """
        }.joined()
        let temporary = try TemporaryStore(attach: nil)
        try temporary.raw(sql)
        let report = try temporary.store.attach()
        #expect(report.refused.isEmpty)
        #expect(report.attached.count == Self.names.count * 2)
        let ones = Self.names.map { _ in "1" }.joined(separator: ", ")
        for name in Self.names {
            let (a, b) = (name.quotedName, (name + " 2").quotedName)
            try temporary.raw(
                "INSERT INTO \(a) VALUES (1, \(ones)); REPLACE INTO \(a) VALUES (2, \(ones)); "
                    + "UPDATE \(a) SET \(a) = 5; DELETE FROM \(a)")
            try temporary.raw(
                "INSERT INTO \(b) VALUES (\(ones)); UPDATE \(b) SET \(a) = 5; "
                    + "REPLACE INTO \(b) VALUES (\(ones)); DELETE FROM \(b)")
        }
        let changes = try temporary.store.fetchHistory().flatMap(\.changes)
        for name in Self.names {
            #expect(
                changes.filter { $0.entity == name }.map(\.kind) == [.insert, .delete, .insert, .update, .delete],
                "\(name)")
            #expect(changes.first { $0.entity == name && $0.kind == .update }?.values == [name: .integer(5)])
            guard name != "r" else { continue }
            #expect(
                changes.filter { $0.entity == name + " 2" }.map(\.kind) == [
                    .insert, .update, .delete, .insert, .delete,
                ], "\(name)")
        }
        #expect(try temporary.store.audit().isClean)
        for name in Self.names where name != "t" && name != "new" && name != "r" && name != "old" {
            try temporary.raw(
                "ALTER TABLE \(name.quotedName) RENAME COLUMN \(name.quotedName) TO \("x;\(name)".quotedName)")
        }
        #expect(try temporary.store.trackedEntities().count == Self.names.count * 2)
        for name in Self.names { try temporary.raw("INSERT INTO \(name.quotedName) VALUES (1, \(ones))") }
        let new = try temporary.store.fetchHistory().flatMap(\.changes).suffix(Self.names.count)
        #expect(new.count == Self.names.count)
        #expect(new.allSatisfy { $0.values.count == Self.names.count && Set($0.values.values) == [.integer(1)] })
    }
}
