import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// A table that is rebuilt on one node, and written to before that node's Martlet looks again.
@Suite struct RebuildSyncTests {
    let lab: AntiEntropyLab

    init() throws { lab = try AntiEntropyLab(Self.schema) }

    private static let item = "(id INTEGER PRIMARY KEY, name TEXT, size INT, note TEXT DEFAULT 'n')"
    private static let schema = "CREATE TABLE item\(item);"
    private static let rebuild = """
        CREATE TABLE fresh\(item); INSERT INTO fresh SELECT * FROM item; DROP TABLE item;
        ALTER TABLE fresh RENAME TO item; UPDATE item SET name = 'edited on a' WHERE name = 'by b';
        """

    /// Two nodes that check each other; a has a row of its own and one of b's.
    private func two() throws -> (CheckedNode, CheckedNode) {
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.node.write("INSERT INTO item(name, size) VALUES ('by a', 1)")
        try b.node.write("INSERT INTO item(name, size) VALUES ('by b', 2)")
        try exchange([a.node, b.node])
        return (a, b)
    }

    @Test func p41aCheckDoesNotUndoWritesAfterARebuild() throws {
        let (a, b) = try two()
        try a.node.foreignWrite(Self.rebuild)
        // The check is the first to look at the rebuilt table.
        try check([b, a])
        let expected = """
            item name='by a' size=1 note='n'
            item name='edited on a' size=2 note='n'
            """
        try expectState(a.node, is: expected)
        try exchange([a.node, b.node])
        try expectBoth(a.node, b.node, are: expected)
        try expectAgreement([a, b])
        #expect(try a.node.conflicts().isEmpty)
    }

    @Test(arguments: [false, true]) func p41onlyWrittenValuesCountAsChanged(restarts: Bool) throws {
        let (a, b) = try two()
        try b.node.write("UPDATE item SET size = 22, note = 'b' WHERE name = 'by b'")
        try b.node.publish()
        try a.node.foreignWrite(Self.rebuild)
        if restarts { try a.node.restart() }
        // Applying a message is the first to look at the rebuilt table.
        try a.node.consume()
        try exchange([a.node, b.node])
        try expectBoth(
            a.node, b.node,
            are: """
                item name='by a' size=1 note='n'
                item name='edited on a' size=22 note='b'
                """)
    }

    /// Lower numbers, numbers that other rows had, and numbers that rows exchange.
    @Test(arguments: [
        "id - 4 FROM tag", "id - 1 FROM tag WHERE id > 5", "13 - id FROM tag", "id % 3 + 5 FROM tag", "id + 1 FROM tag",
    ])
    func p121RowsThatARebuildRenumbersAreNotDeletedElsewhere(numbers: String) throws {
        var request = AttachRequest()
        request.identities = ["tag": ["code"]]
        let lab = try Lab("CREATE TABLE tag(id INTEGER PRIMARY KEY, code INT UNIQUE, note TEXT)", request: request)
        let nodes = [try lab.node("a"), try lab.node("b")]
        try nodes[0].write("INSERT INTO tag VALUES (5, 1, 'one'), (6, 2, 'two'), (7, 3, 'three')")
        try exchange(nodes)
        try nodes[0].foreignWrite(
            """
            CREATE TABLE fresh(id INTEGER PRIMARY KEY, code INT UNIQUE, note TEXT);
            INSERT INTO fresh(code, note, id) SELECT code, note || '!', \(numbers);
            DROP TABLE tag; ALTER TABLE fresh RENAME TO tag
            """)
        try exchange(nodes)
        let first = numbers.contains("WHERE") ? "" : "tag code=1 note='one!'\n"
        try expectAll(
            nodes,
            are: """
                \(first)tag code=2 note='two!'
                tag code=3 note='three!'
                """)
        for node in nodes {
            #expect(try node.store.audit().isClean, "on \(node.name)")
        }
        #expect(try StoreDigest.compute(nodes[0].store) == StoreDigest.compute(nodes[1].store))
    }

    @Test func theChangesOfARebuildAreReportedOnce() throws {
        let lab = try Lab("CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT)")
        let node = try lab.node("a")
        try node.write("INSERT INTO item VALUES (1, 'one'), (2, 'two'), (3, 'three')")
        try node.publish()
        #expect(node.engine.session.takeRebuilt().isClean)
        try node.foreignWrite(
            """
            CREATE TABLE fresh(id INTEGER PRIMARY KEY, name TEXT);
            INSERT INTO fresh VALUES (1, 'one'), (2, 'other'), (4, 'four');
            DROP TABLE item; ALTER TABLE fresh RENAME TO item
            """)
        try node.publish()
        var expected = AuditReport()
        expected.vanished = ["item": 1]
        expected.appeared = ["item": 1]
        expected.changed = ["item": 1]
        #expect(node.engine.session.takeRebuilt() == expected)
        #expect(node.engine.session.takeRebuilt().isClean)
    }

    @Test func p41appliedChangesAreNoLocalChangesAfterARebuild() throws {
        let lab = try Lab(Self.schema)
        let a = try lab.node("a")
        // The other node has an older version of the schema: `note` gets its default here.
        let old = try lab.node("old", schema: "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, size INT);")
        try old.write("INSERT INTO item(name, size) VALUES ('plain', 1); INSERT INTO item(name) VALUES ('other')")
        try exchange([old, a])
        try old.write("UPDATE item SET size = 2 WHERE name = 'other'; DELETE FROM item WHERE name = 'plain'")
        try exchange([old, a])
        let count = try a.outboxCount()
        try a.foreignWrite(Self.rebuild)
        try a.restart()
        try exchange([a, old])
        #expect(try a.outboxCount() == count)
        try expectState(a, is: "item name='other' size=2 note='n'")
        try expectState(old, is: "item name='other' size=2")
    }

    @Test func p41referencesAndConflictsAreNoChangesOfARebuild() throws {
        let lab = try Lab(Lab.trips)
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write(
            """
            INSERT INTO trip(id, name, budget) VALUES (7, 'Alps', 1); INSERT INTO stop(trip, place) VALUES (7, 'Bern');
            INSERT INTO note(trip, text) VALUES (7, 'x'); INSERT INTO setting VALUES ('k', 1.0), (5, '5');
            """)
        try b.write("INSERT INTO trip(id, name, budget) VALUES (7, 'Jura', 2.5)")
        try exchange([a, b])
        try b.write("DELETE FROM note")
        try exchange([a, b])
        let counts = try [a.outboxCount(), b.outboxCount()]
        for node in [a, b] {
            try node.foreignWrite(
                """
                CREATE TABLE f(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, budget REAL);
                INSERT INTO f SELECT * FROM trip;
                DROP TABLE trip; ALTER TABLE f RENAME TO trip;
                CREATE TABLE g(id INTEGER PRIMARY KEY, trip INTEGER NOT NULL REFERENCES trip(id) ON DELETE CASCADE,
                  place TEXT);
                INSERT INTO g SELECT * FROM stop; DROP TABLE stop; ALTER TABLE g RENAME TO stop;
                CREATE TABLE h(key TEXT PRIMARY KEY NOT NULL, value); INSERT INTO h SELECT * FROM setting;
                DROP TABLE setting; ALTER TABLE h RENAME TO setting;
                """)
        }
        try exchange([a, b])
        #expect(try [a.outboxCount(), b.outboxCount()] == counts)
        try expectBoth(
            a, b,
            are: """
                setting key='5' value='5'
                setting key='k' value=1.0
                stop trip=->'Alps' place='Bern'
                trip name='Alps' budget=1.0
                trip name='Jura' budget=2.5
                """)
        try expectSame([a, b])
    }

    /// A table that is dropped before its last changes are stamped, and comes back after the transactions with them
    /// were passed by.
    ///
    /// - Parameters:
    ///   - meanwhile: what is written to the rows while the table is gone.
    ///   - first: the name of the first row in the end.
    ///   - second: the size of the second row in the end. Nil if it is deleted.
    @Test(
        arguments: [
            ("", "edited", 2), ("UPDATE copy SET size = 3 WHERE id = 2;", "edited", 3),
            ("DELETE FROM copy WHERE id = 2;", "edited", nil), ("UPDATE copy SET name = 'one' WHERE id = 1;", "one", 2),
        ] as [(String, String, Int?)])
    func p190ChangesFromBeforeATableWasRecreatedArePublished(meanwhile: String, first: String, second: Int?) throws {
        let lab = try Lab(Self.schema)
        let nodes = [try lab.node("a"), try lab.node("b")]
        try nodes[0].write("INSERT INTO item VALUES (1, 'one', 1, NULL), (2, 'two', 2, NULL), (3, 'three', 3, NULL)")
        try exchange(nodes)
        try nodes[0].foreignWrite(
            """
            UPDATE item SET name = 'edited' WHERE id = 1; DELETE FROM item WHERE id = 3;
            INSERT INTO item VALUES (4, 'four', 4, NULL); UPDATE item SET size = 44 WHERE id = 4;
            CREATE TABLE copy AS SELECT * FROM item; DROP TABLE item
            """)
        // The table is gone when the engine stamps these changes.
        try nodes[0].publish()
        try nodes[0].foreignWrite(
            """
            \(meanwhile) CREATE TABLE item\(Self.item);
            INSERT INTO item SELECT * FROM copy; DROP TABLE copy
            """)
        try exchange(nodes)
        let rows =
            ["item name='\(first)' size=1 note=NULL", "item name='four' size=44 note=NULL"]
            + (second.map { ["item name='two' size=\($0) note=NULL"] } ?? [])
        try expectAll(nodes, are: rows.sorted().joined(separator: "\n"))
        try expectSame(nodes)
    }

    /// Such a change has no value for a column that the table has only since then.
    @Test func p190AChangeFromBeforeATableWasRecreatedLeavesItsNewColumnAlone() throws {
        let lab = try Lab(Self.schema)
        let nodes = [try lab.node("a"), try lab.node("b")]
        try nodes[0].write("INSERT INTO item VALUES (1, 'one', 1, NULL)")
        try exchange(nodes)
        try nodes[0].foreignWrite(
            "INSERT INTO item VALUES (2, 'two', 2, 'x'); CREATE TABLE copy AS SELECT * FROM item; DROP TABLE item")
        try nodes[0].publish()
        let added = Self.item.dropLast() + ", added TEXT DEFAULT 'd')"
        try nodes[0].foreignWrite(
            """
            CREATE TABLE item\(added); INSERT INTO item(id, name, size, note) SELECT * FROM copy; DROP TABLE copy
            """)
        try exchange(nodes)
        try nodes[1].foreignWrite("ALTER TABLE item ADD COLUMN added TEXT DEFAULT 'd'")
        try exchange(nodes)
        try expectAll(
            nodes,
            are: """
                item name='one' size=1 note=NULL added='d'
                item name='two' size=2 note='x' added='d'
                """)
    }

    /// Such a change was made before the other node's, so it must not overrule it just because it is published later.
    @Test func p190AChangeFromBeforeATableWasRecreatedOverrulesNoLaterOne() throws {
        let lab = try Lab(Self.schema)
        let nodes = [try lab.node("a"), try lab.node("b")]
        try nodes[0].write("INSERT INTO item VALUES (1, 'one', 1, NULL)")
        try exchange(nodes)
        try nodes[0].foreignWrite(
            "UPDATE item SET name = 'early' WHERE id = 1; CREATE TABLE copy AS SELECT * FROM item; DROP TABLE item")
        try nodes[0].publish()
        try nodes[1].write("UPDATE item SET name = 'late' WHERE id = 1")
        try nodes[0].foreignWrite(
            "CREATE TABLE item\(Self.item); INSERT INTO item SELECT * FROM copy; DROP TABLE copy")
        try exchange(nodes)
        try expectAll(nodes, are: "item name='late' size=1 note=NULL")
    }

    /// When the target is deleted, the table that refers to it is missing, so nothing looks for rows that lose it.
    @Test(arguments: ["", " NOT NULL"], [false, true])
    func rowsOfARecreatedTableWhoseTargetWentMeanwhileArePending(required: String, isRemote: Bool) throws {
        let player = "player(id INTEGER PRIMARY KEY, team INTEGER\(required) REFERENCES team(id), name TEXT)"
        let lab = try Lab("CREATE TABLE team(id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE \(player);")
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.foreignWrite("INSERT INTO team VALUES (3, 'x'); INSERT INTO player VALUES (1, 3, 'p')")
        try exchange([a, b])
        try a.foreignWrite("CREATE TABLE copy AS SELECT * FROM player; DROP TABLE player")
        try exchange([a, b])
        try (isRemote ? b : a).foreignWrite("DELETE FROM team")
        try exchange([a, b])
        try a.foreignWrite("CREATE TABLE \(player); INSERT INTO player SELECT * FROM copy; DROP TABLE copy")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: required.isEmpty
                ? """
                player team=NULL name='p'
                pending missingTarget player team=->?
                """
                : "pending missingTarget player team=->? name='p'")
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
    }

    /// Rows that are still to come back refer to the deleted row by its number.
    @Test func aRemoteRowTakesNoNumberThatRowsOfAMissingTableMayReferTo() throws {
        let player = "player(id INTEGER PRIMARY KEY, team INTEGER REFERENCES team(id), name TEXT)"
        let lab = try Lab("CREATE TABLE team(id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE \(player);")
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.foreignWrite("INSERT INTO team VALUES (3, 'x'); INSERT INTO player VALUES (1, 3, 'p')")
        try exchange([a, b])
        try a.foreignWrite("CREATE TABLE copy AS SELECT * FROM player; DROP TABLE player")
        try exchange([a, b])
        try a.foreignWrite("DELETE FROM team")
        try exchange([a, b])
        try b.foreignWrite("INSERT INTO team VALUES (3, 'y')")
        try exchange([a, b])
        try a.foreignWrite("CREATE TABLE \(player); INSERT INTO player SELECT * FROM copy; DROP TABLE copy")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                player team=NULL name='p'
                team name='y'
                pending missingTarget player team=->?
                """)
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
    }
}
