import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// With foreign keys switched off, two rows of one table can come to mean the same row: one holds the key that their
/// target has left, the other the key that it has now. Other nodes have one row, and so does this one in the end.
@Suite struct OneRowForTwoTests {
    private static let schema = """
        CREATE TABLE tag(id INTEGER PRIMARY KEY, code TEXT UNIQUE);
        CREATE TABLE use(id INTEGER PRIMARY KEY REFERENCES tag(id), code TEXT REFERENCES tag(code), note TEXT);
        """

    private func nodes(_ lab: Lab, slice: Int?) throws -> [TestNode] {
        let a = try lab.node("a") { if let slice { $0.enqueueLimits.changes = slice } }
        return [a, try lab.node("b")]
    }

    private func lab() throws -> Lab {
        var request = AttachRequest()
        request.identities = ["tag": ["code"]]
        return try Lab(Self.schema, request: request)
    }

    private func expectSame(_ nodes: [TestNode], are expected: String) throws {
        try expectAll(nodes, are: expected)
        #expect(try StoreDigest.compute(nodes[0].store) == StoreDigest.compute(nodes[1].store))
        for node in nodes {
            #expect(try node.store.audit().isClean, "on \(node.name)")
            #expect(try node.rows("PRAGMA foreign_key_check") == [], "on \(node.name)")
        }
    }

    @Test(arguments: [nil, 1, 2])
    func aRowThatFollowsItsTargetKeepsItsPendingReference(slice: Int?) throws {
        let lab = try lab()
        let nodes = try nodes(lab, slice: slice)
        try nodes[0].write("INSERT INTO tag VALUES (1, 'k3'), (2, 'k1'); INSERT INTO use VALUES (1, 'k3', 'first')")
        try exchange(nodes)
        try nodes[0].foreignWrite(
            "INSERT INTO use VALUES (2, NULL, 'second'); UPDATE OR REPLACE tag SET id = 1 WHERE id = 2")
        try exchange(nodes)
        try expectSame(
            nodes,
            are: """
                tag code='k1'
                use id=->'k1' code=NULL note='first'
                pending missingTarget use id=->'k1' code='k3'
                """)
        try nodes[1].write("INSERT INTO tag(code) VALUES ('k3')")
        try exchange(nodes)
        try expectSame(
            nodes,
            are: """
                tag code='k1'
                tag code='k3'
                use id=->'k1' code='k3' note='first'
                """)
    }

    /// A program writes to the row that refers to the key which the target has left, before the agent looks.
    @Test(arguments: [nil, 1, 2])
    func aWriteToTheRowThatIsLeftBehindReachesTheOtherOne(slice: Int?) throws {
        for (statement, code, note) in [
            ("UPDATE use SET note = 'third' WHERE id = 2", "NULL", "third"),
            ("UPDATE use SET code = 'k1' WHERE id = 2", "'k1'", "first"),
            (
                "UPDATE use SET code = 'k1' WHERE id = 2; UPDATE use SET code = NULL, note = 'third' WHERE id = 2",
                "NULL", "third"
            ),
            ("UPDATE use SET note = 'third' WHERE id = 2; DELETE FROM use WHERE id = 2", "NULL", "first"),
            ("DELETE FROM use WHERE id = 2", "NULL", "first"),
            ("INSERT INTO tag VALUES (2, 'k2'); REPLACE INTO use VALUES (2, 'k2', 'other')", "NULL", "first"),
        ] {
            let lab = try lab()
            let nodes = try nodes(lab, slice: slice)
            try nodes[0].write(
                """
                INSERT INTO tag VALUES (1, 'k3'), (2, 'k1');
                INSERT INTO use VALUES (1, 'k3', 'first'), (2, NULL, 'second');
                """)
            try exchange(nodes)
            try nodes[0].foreignWrite("UPDATE OR REPLACE tag SET id = 1 WHERE id = 2")
            // Closes the other program's transaction first.
            try nodes[0].write(statement)
            try exchange(nodes)
            var rows = ["tag code='k1'"]
            if statement.contains("k2") { rows.append("tag code='k2'") }
            rows.append("use id=->'k1' code=\(code) note='\(note)'")
            if statement.contains("k2") { rows.append("use id=->'k2' code='k2' note='other'") }
            if code == "NULL", !statement.contains("code = NULL") {
                rows.append("pending missingTarget use id=->'k1' code='k3'")
            }
            try expectSame(nodes, are: rows.joined(separator: "\n"))
        }
    }

    /// The row that is left behind has a reference that waits, which is not the other row's.
    @Test(arguments: [nil, 1, 2])
    func aPendingReferenceOfTheRowThatIsLeftBehindIsOverruled(slice: Int?) throws {
        let lab = try lab()
        let nodes = try nodes(lab, slice: slice)
        try nodes[0].write(
            """
            INSERT INTO tag VALUES (1, 'k3'), (2, 'k1'), (3, 'k9');
            INSERT INTO use VALUES (1, 'k3', 'first'), (2, 'k9', 'second');
            """)
        try nodes[0].foreignWrite("DELETE FROM tag WHERE id = 3")
        try exchange(nodes)
        try nodes[0].foreignWrite(
            "UPDATE use SET code = NULL WHERE id = 1; UPDATE OR REPLACE tag SET id = 1 WHERE id = 2")
        try exchange(nodes)
        try nodes[1].write("INSERT INTO tag(code) VALUES ('k9')")
        try exchange(nodes)
        try expectSame(
            nodes,
            are: """
                tag code='k1'
                tag code='k9'
                use id=->'k1' code=NULL note='first'
                """)
    }

    /// Both rows get another ID, with what is pending.
    @Test(arguments: [nil, 1, 2])
    func bothRowsFollowTheirTarget(slice: Int?) throws {
        let lab = try lab()
        let nodes = try nodes(lab, slice: slice)
        try nodes[0].write(
            """
            INSERT INTO tag VALUES (1, 'k3'), (2, 'k1'), (3, 'k9');
            INSERT INTO use VALUES (1, 'k9', 'first'), (2, NULL, 'second');
            """)
        try nodes[0].foreignWrite("DELETE FROM tag WHERE id = 3")
        try exchange(nodes)
        try nodes[0].foreignWrite("UPDATE OR REPLACE tag SET id = 1 WHERE id = 2")
        try nodes[0].write("UPDATE tag SET code = 'k4' WHERE id = 1")
        try exchange(nodes)
        try expectSame(
            nodes,
            are: """
                tag code='k4'
                use id=->'k4' code=NULL note='first'
                pending missingTarget use id=->'k4' code='k9'
                """)
    }
}
