import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// The user's triggers that were created after the capture triggers: SQLite runs the newest first.
@Suite struct TriggerOrderTests {
    /// The whole state of a node with these notes. Each node assigns integer keys by itself, so they are left out.
    private func state(_ key: String, _ notes: [(id: String, body: String, n: Int)]) -> String {
        let lines = notes.map { note in
            "note \(key.hasPrefix("TEXT") ? "id='\(note.id)' " : "")body='\(note.body)' n=\(note.n)"
        }
        return lines.sorted().joined(separator: "\n")
    }

    @Test(arguments: ["TEXT PRIMARY KEY NOT NULL", "INTEGER PRIMARY KEY"])
    func p90ANewerTriggersWriteToItsRowIsLoggedAfterTheChange(key: String) throws {
        let lab = try Lab("CREATE TABLE note(id \(key), body TEXT, n INTEGER)")
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.foreignWrite(
            """
            CREATE TRIGGER count AFTER INSERT ON note WHEN new.body = 'count' BEGIN
              UPDATE note SET n = new.n + 1 WHERE id = new.id;
            END;
            CREATE TRIGGER move AFTER INSERT ON note WHEN new.body = 'move' BEGIN
              UPDATE note SET id = new.id + 100 WHERE id = new.id;
            END;
            CREATE TRIGGER drop_ AFTER INSERT ON note WHEN new.body = 'drop' BEGIN
              DELETE FROM note WHERE id = new.id;
            END;
            CREATE TRIGGER sum AFTER UPDATE OF body ON note BEGIN
              UPDATE note SET n = 7, body = upper(new.body) WHERE id = new.id AND new.body <> upper(new.body);
            END
            """)
        try exchange([a, b])
        try a.foreignWrite("INSERT INTO note VALUES (1, 'count', 1), (2, 'move', 1), (3, 'drop', 1), (4, 'plain', 1)")
        try a.foreignWrite("UPDATE note SET body = 'x', n = 3 WHERE id = 4")
        try exchange([a, b])
        try expectBoth(a, b, are: state(key, [("1", "count", 2), ("102", "move", 1), ("4", "X", 7)]))
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
        #expect(try a.store.audit().isClean)
    }

    /// The trigger writes before anybody has looked at the schema again, so its writes are logged ahead of the changes
    /// that fired it.
    @Test(arguments: ["TEXT PRIMARY KEY NOT NULL", "INTEGER PRIMARY KEY"])
    func p193TheWritesOfATriggerThatWasJustCreatedReachOtherNodes(key: String) throws {
        let lab = try Lab("CREATE TABLE note(id \(key), body TEXT, n INTEGER)")
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.foreignWrite("INSERT INTO note VALUES (4, 'plain', 1)")
        try exchange([a, b])
        try a.foreignWrite(
            """
            CREATE TRIGGER count AFTER INSERT ON note WHEN new.body = 'count' BEGIN
              UPDATE note SET n = 99 WHERE id = new.id;
            END;
            CREATE TRIGGER drop_ AFTER INSERT ON note WHEN new.body = 'drop' BEGIN
              DELETE FROM note WHERE id = new.id;
            END;
            CREATE TRIGGER move AFTER INSERT ON note WHEN new.body = 'move' BEGIN
              UPDATE note SET id = new.id + 100 WHERE id = new.id;
            END;
            CREATE TRIGGER sum AFTER UPDATE OF body ON note WHEN new.n < 7 BEGIN
              UPDATE note SET n = 7 WHERE id = new.id;
            END;
            INSERT INTO note VALUES (1, 'count', 1), (2, 'move', 1), (3, 'drop', 1);
            UPDATE note SET body = 'x', n = 3 WHERE id = 4;
            """)
        try exchange([a, b])
        try expectBoth(a, b, are: state(key, [("1", "count", 99), ("102", "move", 1), ("4", "x", 7)]))
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
        #expect(try a.store.audit().isClean)
    }

    /// The program writes to the new rows again before anybody has looked at the schema, so what the trigger wrote to
    /// them is neither their last state nor logged after their inserts.
    @Test(
        arguments: [
            ("code TEXT PRIMARY KEY NOT NULL", [:]), ("id INTEGER PRIMARY KEY, code TEXT UNIQUE", [:]),
            ("id INTEGER PRIMARY KEY, code TEXT UNIQUE", ["note": ["code"]]),
        ] as [(String, [String: [String]])])
    func laterWritesToTheRowsOfATriggerThatWasJustCreatedWin(
        _ columns: String, _ identities: [String: [String]]
    ) throws {
        var request = AttachRequest()
        request.identities = identities
        let lab = try Lab("CREATE TABLE note(\(columns), n INTEGER)", request: request)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.foreignWrite(
            """
            CREATE TRIGGER filled AFTER INSERT ON note WHEN new.n IS NULL BEGIN
              UPDATE note SET n = 7 WHERE code = new.code;
            END;
            INSERT INTO note(code) VALUES ('kept'), ('set'), ('renamed'), ('gone'), ('again');
            UPDATE note SET n = 5 WHERE code = 'set';
            UPDATE note SET code = 'other' WHERE code = 'renamed';
            DELETE FROM note WHERE code IN ('gone', 'again');
            INSERT INTO note(code, n) VALUES ('again', 9);
            """)
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                note code='again' n=9
                note code='kept' n=7
                note code='other' n=7
                note code='set' n=5
                """)
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
        #expect(try a.store.audit().isClean)
    }

    /// The trigger writes to the row under its new key, ahead of the move in the log.
    @Test(arguments: [[:], ["note": ["code"]]] as [[String: [String]]])
    func theWriteOfATriggerThatAMoveFiredReachesOtherNodes(identities: [String: [String]]) throws {
        var request = AttachRequest()
        request.identities = identities
        let lab = try Lab("CREATE TABLE note(id INTEGER PRIMARY KEY, code TEXT UNIQUE, n INTEGER)", request: request)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.foreignWrite("INSERT INTO note VALUES (4, 'x', 1), (5, 'y', 1)")
        try exchange([a, b])
        try a.foreignWrite(
            """
            CREATE TRIGGER moved AFTER UPDATE OF id ON note BEGIN UPDATE note SET n = new.id WHERE id = new.id; END;
            UPDATE note SET id = 9 WHERE id = 4;
            """)
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                note code='x' n=9
                note code='y' n=1
                """)
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
        #expect(try a.store.audit().isClean)
    }

    /// The move's foreign-key action changes another row, and a trigger on that row writes to the row that moves.
    @Test func theWriteOfATriggerThatAForeignKeyActionFiredReachesOtherNodes() throws {
        let lab = try Lab(
            """
            CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, moves INTEGER);
            CREATE TABLE part(id INTEGER PRIMARY KEY, item INTEGER REFERENCES item(id) ON UPDATE CASCADE);
            CREATE TRIGGER moved AFTER UPDATE OF item ON part BEGIN
              UPDATE item SET moves = moves + 1 WHERE id = new.item;
            END;
            """)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO item VALUES (5, 'x', 0); INSERT INTO part VALUES (1, 5)")
        try exchange([a, b])
        try a.write("UPDATE item SET id = 4 WHERE id = 5")
        // The next move comes back to the first key, in one transaction with a later write.
        try a.write("UPDATE item SET id = 5 WHERE id = 4; UPDATE item SET name = 'z'")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                item name='z' moves=2
                part item=->'z'
                """)
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
        #expect(try a.store.audit().isClean)
    }

    /// The update displaces another row. A trigger on the parts of that row writes to the updated row, and SQLite
    /// overwrites that; a trigger on its own parts writes to it once it has the other row's key.
    @Test(
        arguments: [
            "UPDATE OR REPLACE item SET id = 5 WHERE id = 4", "UPDATE OR REPLACE item SET name = 'y' WHERE id = 4",
        ],
        [[:], ["item": ["name"]]] as [[String: [String]]])
    func p233WhatActionsOfADisplacingUpdateWriteReachesOtherNodes(
        _ statement: String, _ identities: [String: [String]]
    ) throws {
        let moves = statement.contains("SET id")
        // SQLite refuses the other statement with recursive triggers (3.40.1), which the store's own connections have.
        for (isOwn, keepsOldValues) in [(false, false), (false, true)] + (moves ? [(true, false), (true, true)] : []) {
            var request = AttachRequest()
            request.identities = identities
            request.keepsOldValues = keepsOldValues
            let lab = try Lab(
                """
                CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT UNIQUE, moves INT NOT NULL DEFAULT 0, note TEXT);
                CREATE TABLE part(id INTEGER PRIMARY KEY,
                  item INTEGER REFERENCES item(id) ON UPDATE CASCADE ON DELETE CASCADE);
                CREATE TRIGGER moved AFTER UPDATE OF item ON part BEGIN
                  UPDATE item SET moves = moves + 1 WHERE id = new.item;
                END;
                CREATE TRIGGER gone AFTER DELETE ON part BEGIN UPDATE item SET note = 'lost ' || old.id; END;
                """, request: request)
            let a = try lab.node("a")
            let b = try lab.node("b")
            try a.write(
                """
                INSERT INTO item(id, name) VALUES (4, 'x'), (5, 'y'), (9, 'z');
                INSERT INTO part VALUES (1, 4), (3, 5);
                """)
            try exchange([a, b])
            if isOwn { try a.write(statement) } else { try a.foreignWrite(statement, foreignKeys: true) }
            try exchange([a, b])
            try expectBoth(
                a, b,
                are: moves
                    ? """
                    item name='x' moves=1 note=NULL
                    item name='z' moves=0 note='lost 3'
                    part item=->'x'
                    """
                    : """
                    item name='y' moves=0 note=NULL
                    item name='z' moves=0 note='lost 3'
                    part item=->'y'
                    """)
            #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
            #expect(try a.store.audit().isClean)
        }
    }

    @Test(arguments: ["", " WITHOUT ROWID"], [false, true])
    func p233WhatActionsWriteInATableWithoutAnIntegerKeyReachesOtherNodes(
        _ withoutRowID: String, _ keepsOldValues: Bool
    ) throws {
        var request = AttachRequest()
        request.keepsOldValues = keepsOldValues
        let lab = try Lab(
            """
            CREATE TABLE item(name TEXT PRIMARY KEY NOT NULL, code TEXT UNIQUE, note TEXT)\(withoutRowID);
            CREATE TABLE part(id INTEGER PRIMARY KEY, item TEXT REFERENCES item(name) ON DELETE CASCADE);
            CREATE TRIGGER gone AFTER DELETE ON part BEGIN UPDATE item SET note = 'lost ' || old.item; END;
            """, request: request)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO item(name, code) VALUES ('x', '1'), ('y', '2'), ('z', '3')")
        try a.write("INSERT INTO part VALUES (3, 'y')")
        try exchange([a, b])
        try a.foreignWrite("UPDATE OR REPLACE item SET code = '2' WHERE name = 'x'", foreignKeys: true)
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                item name='x' code='2' note=NULL
                item name='z' code='3' note='lost y'
                """)
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
        #expect(try a.store.audit().isClean)
    }
}
