import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// If a change overrules a value that its author had not seen, the journal of the node that wrote the value has it,
/// wherever the value was by then. Found by the simulator.
@Suite struct JournalPitfallTests {
    static let schema = "CREATE TABLE item(code TEXT PRIMARY KEY NOT NULL, place INT UNIQUE, note TEXT)"

    enum Overruling: String, CaseIterable { case update, insert, delete, otherColumn }

    /// Another node changes a row that is pending because another row has its unique key.
    @Test(arguments: Overruling.allCases) func p127ValuesOfAPendingRowAreJournaled(_ by: Overruling) throws {
        let lab = try Lab(Self.schema)
        let (a, b, c) = (try lab.node("a"), try lab.node("b"), try lab.node("c"))
        try c.write("INSERT INTO item VALUES ('x', 1, 'first')")
        try exchange([a, b, c])
        try a.write("UPDATE item SET place = 2, note = 'mine' WHERE code = 'x'")
        try b.write("INSERT INTO item VALUES ('y', 2, 'newer')")
        try b.publish()
        try a.consume()
        #expect(try a.parked() == ["unique"])
        switch by {
        case .update: try c.write("UPDATE item SET note = 'theirs' WHERE code = 'x'")
        // A delete and an insert.
        case .insert: try c.write("REPLACE INTO item VALUES ('x', 3, 'theirs')")
        case .delete: try c.write("DELETE FROM item WHERE code = 'x'")
        case .otherColumn: try c.write("UPDATE item SET place = 3 WHERE code = 'x'")
        }
        try exchange([c, a, b])
        try exchange([c, a, b])
        let overruled: [String: Value] =
            switch by {
            case .update: ["note": .text("mine")]
            case .insert, .delete: ["note": .text("mine"), "place": .integer(2)]
            case .otherColumn: ["place": .integer(2)]
            }
        let found = try a.store.conflicts().filter {
            $0.kind == (by == .update || by == .otherColumn ? .attribute : .deleted)
        }
        for (column, value) in overruled { #expect(found.contains { $0.column == column && $0.value == value }) }
        #expect(
            try !a.store.conflicts().contains { $0.column == "note" && $0.value == .text("first") },
            "what was known is in the journal")
        if by == .otherColumn { #expect(try !a.conflicts().contains("attribute|mine")) }
        let expected =
            switch by {
            case .update: "item code='y' place=2 note='newer'\npending unique item code='x' place=2 note='theirs'"
            case .insert: "item code='x' place=3 note='theirs'\nitem code='y' place=2 note='newer'"
            case .delete: "item code='y' place=2 note='newer'"
            case .otherColumn: "item code='x' place=3 note='mine'\nitem code='y' place=2 note='newer'"
            }
        try expectAll([a, b, c], are: expected)
    }

    /// For instance, copies of one file that are attached with their rows.
    @Test func p160TwoNodesThatWroteTheSameValueDoNotConflict() throws {
        let lab = try Lab(Self.schema)
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        for (node, note) in [(b, "theirs"), (a, "mine")] {
            try node.write("INSERT INTO item VALUES ('x', 1, '\(note)'), ('z', 3, 'same')")
        }
        try exchange([a, b])
        for node in [a, b] { #expect(try node.conflicts() == ["attribute|theirs"], "on \(node.name)") }
    }

    /// One node inserts a row again, and another deletes it without having seen that.
    @Test func p127ARowInsertedAgainIsJournaledByTheNodeThatDeletedItUnseen() throws {
        let lab = try Lab(Self.schema)
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO item VALUES ('x', 1, 'first')")
        try exchange([a, b])
        try a.write("DELETE FROM item WHERE code = 'x'")
        try a.write("INSERT INTO item VALUES ('x', 1, 'again')")
        try b.write("DELETE FROM item WHERE code = 'x'")
        try a.publish()
        try b.consume()
        #expect(try b.conflicts().contains("deleted|again"))
        try exchange([a, b])
        #expect(try a.conflicts().contains("deleted|again"))
        try expectBoth(a, b, are: "nothing")
    }

    /// One node writes a row again, as a delete and an insert, and another node changes it later without having seen
    /// that.
    @Test func p133ARowInsertedAgainIsJournaledByTheNodeThatUpdatedItUnseen() throws {
        let lab = try Lab(Self.schema)
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO item VALUES ('x', 1, 'first')")
        try exchange([a, b])
        try a.write("DELETE FROM item WHERE code = 'x'")
        try a.write("INSERT INTO item VALUES ('x', 1, 'again')")
        try b.write("UPDATE item SET note = 'newer' WHERE code = 'x'")
        try a.publish()
        try b.consume()
        #expect(try b.conflicts().contains("attribute|again"))
        try expectState(b, is: "item code='x' place=1 note='newer'")
        try exchange([a, b])
        try expectBoth(a, b, are: "item code='x' place=1 note='newer'")
    }

    /// The row needs a missing target, and becomes pending as a newer value arrives.
    @Test func p127AValueOverruledByOneThatMakesTheRowPendingIsJournaled() throws {
        let lab = try Lab(
            """
            CREATE TABLE box(code TEXT PRIMARY KEY NOT NULL);
            CREATE TABLE item(code TEXT PRIMARY KEY NOT NULL, box TEXT NOT NULL REFERENCES box(code), note TEXT);
            """)
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO box VALUES ('old'), ('mine'); INSERT INTO item VALUES ('x', 'old', 'n')")
        try exchange([a, b])
        try a.write("UPDATE item SET box = 'mine' WHERE code = 'x'")
        try b.write("INSERT INTO box VALUES ('gone')")
        try b.write("UPDATE item SET box = 'gone' WHERE code = 'x'")
        try b.publish()
        // The box arrives after the item that is in it.
        let messages = try lab.messages().suffix(2)
        try a.receive([messages[messages.index(before: messages.endIndex)]])
        #expect(try a.parked() == ["missingTarget"])
        #expect(try a.conflicts() == ["attribute|mine"])
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                box code='gone'
                box code='mine'
                box code='old'
                item code='x' box='gone' note='n'
                """)
    }

    /// A reference whose target hasn't arrived reads as NULL. A program that replaces or deletes the row has not seen
    /// it.
    @Test(
        arguments: [
            ("DELETE FROM note", []),
            ("REPLACE INTO note(id, text) VALUES (1, 'other')", ["note trip=NULL text='other'"]),
            ("UPDATE note SET trip = 1", ["note trip=->'seen' text='n'"]),
        ] as [(String, [String])])
    func p127APendingReferenceIsJournaledWhenAProgramOverrulesIt(_ statement: String, notes: [String]) throws {
        let lab = try Lab()
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO trip(id, name) VALUES (1, 'seen'); INSERT INTO note(id, text) VALUES (1, 'n')")
        try exchange([a, b])
        try a.write("INSERT INTO trip(id, name) VALUES (2, 'unseen')")
        try a.write("UPDATE note SET trip = 2")
        try a.publish()
        try b.receive([try #require(lab.messages().last)])
        try expectState(
            b,
            is: """
                note trip=NULL text='n'
                trip name='seen' budget=NULL
                pending missingTarget note trip=->?
                """)
        try b.write(statement)
        try b.publish()
        let conflict = try #require(try b.store.conflicts().last)
        #expect(conflict.column == "trip" && conflict.loser.node == a.engine.node)
        guard case .reference = conflict.value else {
            Issue.record("\(conflict.value)")
            return
        }
        try exchange([a, b])
        let trips = ["trip name='seen' budget=NULL", "trip name='unseen' budget=NULL"]
        try expectBoth(a, b, are: (notes + trips).joined(separator: "\n"))
    }
}
