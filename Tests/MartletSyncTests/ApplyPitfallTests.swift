import MartletStore
import MartletSync
import MartletTestSupport
import Testing

@Suite struct ApplyPitfallTests {
    let lab: Lab

    init() throws { lab = try Lab(partitions: 3) }

    @Test func p09ACrashOnEitherSideOfTheCommitAppliesOnce() throws {
        let a = try lab.node("a")
        let b = try lab.node("b") { $0.applyBatchTransactions = 2 }
        for number in 1...7 { try a.write("INSERT INTO trip(name) VALUES ('\(number)')") }
        try a.publish()
        for _ in 0..<6 {
            // The node crashes after reading and before it applies anything, and then after applying and before it
            // stores that.
            try b.restart()
            b.consumer.step(timeout: .milliseconds(1))
            try b.restart()
        }
        try b.consume()
        try expectBoth(a, b, are: (1...7).map { "trip name='\($0)' budget=NULL" }.joined(separator: "\n"))
        let origins = try b.store.fetchHistory().compactMap(\.origin?.sequence)
        #expect(origins == [1, 2, 3, 4, 5, 6, 7])
    }

    @Test func anUnlimitedClockSkewIsAllowed() throws {
        let a = try lab.node("a")
        let b = try lab.node("b") { $0.maxClockSkew = .seconds(Int64.max) }
        try a.write("INSERT INTO trip(name) VALUES ('one')")
        try a.publish()
        #expect(try b.consume().applied == 1)
    }

    @Test func p12ApplyDeletesNoOtherRowWithTheSameUniqueKeyAndKeepsChildren() throws {
        let lab = try Lab(
            """
            CREATE TABLE account(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, note TEXT);
            CREATE TABLE entry(id INTEGER PRIMARY KEY,
              account INTEGER NOT NULL REFERENCES account(id) ON DELETE CASCADE);
            """)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO account(name, note) VALUES ('x', 'a'); INSERT INTO entry(account) VALUES (1), (1)")
        try b.write("INSERT INTO account(name, note) VALUES ('x', 'b'); INSERT INTO entry(account) VALUES (1)")
        try exchange([a, b])
        // The loser and its entries are pending until the key is free.
        try expectBoth(
            a, b,
            are: """
                account name='x' note='b'
                entry account=->'x'
                pending missingTarget entry account=->?
                pending missingTarget entry account=->?
                pending unique account name='x' note='a'
                """)
        for node in [a, b] {
            #expect(try node.store.conflicts().count { $0.kind == .unique } == 1)
        }
        try b.write("UPDATE account SET name = 'y'")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                account name='x' note='a'
                account name='y' note='b'
                entry account=->'x'
                entry account=->'x'
                entry account=->'y'
                """)
    }

    @Test func p12AKeyDeclaredToReplaceReplacesNothingOnApply() throws {
        let lab = try Lab(
            "CREATE TABLE account(id TEXT PRIMARY KEY ON CONFLICT REPLACE, name TEXT UNIQUE ON CONFLICT REPLACE)")
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO account VALUES ('1', 'x')")
        try b.write("INSERT INTO account VALUES ('2', 'x')")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                account id='2' name='x'
                pending unique account id='1' name='x'
                """)
        try b.write("DELETE FROM account WHERE id = '2'")
        try exchange([a, b])
        try expectBoth(a, b, are: "account id='1' name='x'")
    }

    @Test func p13AParentAndItsChildMayComeInEitherOrderInOneTransaction() throws {
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO trip(id, name) VALUES (7, 'first'); INSERT INTO stop(trip, place) VALUES (7, 'x')")
        try a.foreignWrite(
            "INSERT INTO stop(trip, place) VALUES (9, 'y'); INSERT INTO trip(id, name) VALUES (9, 'second')")
        try a.foreignWrite("INSERT INTO note(trip, text) VALUES (12, 'z')")
        try a.foreignWrite("INSERT INTO trip(id, name) VALUES (12, 'third')")
        // These rows take the integers that the other rows have on the other node.
        for _ in 1...12 { try b.write("INSERT INTO trip(name) VALUES ('other')") }
        try exchange([a, b])
        let others = Array(repeating: "trip name='other' budget=NULL", count: 12).joined(separator: "\n")
        try expectBoth(
            a, b,
            are: """
                note trip=->'third' text='z'
                stop trip=->'first' place='x'
                stop trip=->'second' place='y'
                trip name='first' budget=NULL
                \(others)
                trip name='second' budget=NULL
                trip name='third' budget=NULL
                """)
    }

    @Test func p13AChildThatComesFirstWaitsForItsParent() throws {
        let a = try lab.node("a")
        let b = try lab.node("b")
        let c = try lab.node("c")
        try a.write("INSERT INTO trip(name) VALUES ('Alps')")
        try a.publish()
        let parent = try lab.messages()
        try b.consume()
        try b.write("INSERT INTO stop(trip, place) VALUES (1, 'x'); INSERT INTO note(trip, text) VALUES (1, 'n')")
        try b.publish()
        let child = try lab.messages().filter { !parent.map(\.key).contains($0.key) }
        try c.receive(child)
        try expectState(
            c,
            is: """
                note trip=NULL text='n'
                pending missingTarget note trip=->?
                pending missingTarget stop trip=->? place='x'
                """)
        try c.restart()
        try c.receive(parent)
        try expectBoth(
            b, c,
            are: """
                note trip=->'Alps' text='n'
                stop trip=->'Alps' place='x'
                trip name='Alps' budget=NULL
                """)
        #expect(try c.rows("PRAGMA foreign_key_check") == [])
    }

    @Test func p14ARowThatTheTableRefusesDoesNotStopTheBatch() throws {
        let a = try lab.node("a")
        let strict = Lab.trips.replacing("budget REAL)", with: "budget REAL NOT NULL CHECK (budget < 100))")
        let b = try lab.node("b", schema: strict)
        try a.write("INSERT INTO trip(name) VALUES ('none'); INSERT INTO setting VALUES ('k', 1)")
        try a.write("INSERT INTO trip(name, budget) VALUES ('large', 1000)")
        try a.write("INSERT INTO trip(name, budget) VALUES ('fits', 10)")
        try exchange([a, b])
        try expectState(
            a,
            is: """
                setting key='k' value=1
                trip name='fits' budget=10.0
                trip name='large' budget=1000.0
                trip name='none' budget=NULL
                """)
        try expectState(
            b,
            is: """
                setting key='k' value=1
                trip name='fits' budget=10.0
                pending constraint trip name='large' budget=1000.0
                pending constraint trip name='none'
                """)
        try a.write("UPDATE trip SET budget = 20 WHERE name = 'large'")
        try exchange([a, b])
        try expectState(
            b,
            is: """
                setting key='k' value=1
                trip name='fits' budget=10.0
                trip name='large' budget=20.0
                pending constraint trip name='none'
                """)
        try b.store.alter(
            sql:
                """
                CREATE TABLE copy(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, budget REAL);
                INSERT INTO copy SELECT * FROM trip;
                DROP TABLE trip;
                ALTER TABLE copy RENAME TO trip
                """
        )
        try b.consume()
        b.publisher.step()
        try expectBoth(
            a, b,
            are: """
                setting key='k' value=1
                trip name='fits' budget=10.0
                trip name='large' budget=20.0
                trip name='none' budget=NULL
                """)
    }

    @Test func p15AppliedChangesAreNotRepublished() throws {
        let nodes = [try lab.node("a"), try lab.node("b"), try lab.node("c")]
        for node in nodes {
            try node.write(
                "INSERT INTO trip(name) VALUES ('\(node.name)'); INSERT INTO setting VALUES ('\(node.name)', 1)")
        }
        try exchange(nodes)
        try nodes[0].write("UPDATE trip SET budget = 1")
        try nodes[1].write("DELETE FROM trip WHERE name = 'c'")
        for _ in 0..<4 { try exchange(nodes) }
        #expect(try nodes.map { try $0.outboxCount() } == [2, 2, 1])
        #expect(try lab.messages().count == 5)
        try expectAll(
            nodes,
            are: """
                setting key='a' value=1
                setting key='b' value=1
                setting key='c' value=1
                trip name='a' budget=1.0
                trip name='b' budget=1.0
                """)
        #expect(try nodes[2].store.fetchHistory(HistoryQuery(author: .equal(TransactionAuthor.sync))).isEmpty == false)
    }

    @Test func p16OnlyOriginAndSequenceDecideWhetherATransactionWasApplied() throws {
        let a = try lab.node("a")
        for number in 1...5 { try a.write("INSERT INTO setting VALUES ('\(number)', \(number))") }
        try a.publish()
        let messages = try lab.messages()
        let b = try lab.node("b")
        try b.receive([messages[0], messages[3], messages[3]])
        #expect(try b.gaps() == [2...3])
        try b.receive([messages[2], messages[0], messages[2]], partition: 4)
        #expect(try b.gaps() == [2...2])
        try b.restart()
        let report = try b.receive(messages)
        #expect(report.applied == 2 && report.duplicates == 3)
        #expect(try b.gaps() == [])
        try expectBoth(a, b, are: (1...5).map { "setting key='\($0)' value=\($0)" }.joined(separator: "\n"))
    }

    @Test func p36TriggersAndCascadesOfTheUserDoNotFireAgainOnApply() throws {
        let lab = try Lab(
            Lab.trips + """
                CREATE TABLE audit(id INTEGER PRIMARY KEY, what TEXT);
                CREATE TRIGGER trip_insert AFTER INSERT ON trip
                  BEGIN INSERT INTO audit(what) VALUES ('+' || NEW.name); END;
                CREATE TRIGGER trip_delete AFTER DELETE ON trip
                  BEGIN INSERT INTO audit(what) VALUES ('-' || OLD.name); END;
                """)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO trip(name) VALUES ('x'), ('y'); INSERT INTO stop(trip) VALUES (1), (2)")
        try exchange([a, b])
        try b.write("DELETE FROM trip WHERE name = 'x'")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                audit what='+x'
                audit what='+y'
                audit what='-x'
                stop trip=->'y' place=NULL
                trip name='y' budget=NULL
                """)
        #expect(try a.outboxCount() == 1 && b.outboxCount() == 1)
    }
}
