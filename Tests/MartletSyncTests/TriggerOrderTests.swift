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
}
