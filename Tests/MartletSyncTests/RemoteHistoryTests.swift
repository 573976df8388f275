import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// What a node's history records about remote changes.
@Suite struct RemoteHistoryTests {
    private func lab(_ schema: String) throws -> Lab {
        var request = AttachRequest()
        request.keepsOldValues = true
        return try Lab(schema, request: request)
    }

    private func remoteChanges(_ node: TestNode) throws -> [String] {
        try node.store.fetchHistory().filter { $0.author == TransactionAuthor.sync }.flatMap(\.changes).map(\.line)
    }

    /// Updates alone, updates that lose some columns, and updates with every kind of key.
    @Test(arguments: ["id INTEGER PRIMARY KEY", "id TEXT PRIMARY KEY NOT NULL", "id BLOB PRIMARY KEY NOT NULL"])
    func theHistoryKeepsOldValuesOfRemoteUpdatesToo(key: String) throws {
        let lab = try lab("CREATE TABLE item(\(key), a, b)")
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO item VALUES (7, 'x', 1)")
        try exchange([a, b])
        try a.write("UPDATE item SET a = 'y'")
        try exchange([a, b])
        try b.write("UPDATE item SET a = 'later'")
        try a.write("UPDATE item SET a = 'latest', b = NULL")
        try exchange([a, b])
        try a.write("DELETE FROM item")
        try exchange([a, b])
        let name = key.hasPrefix("id INTEGER") ? "item#7" : "item"
        let lines = try remoteChanges(b).map { line in
            // If the identity is a column, it is in each line, but it doesn't matter here.
            line.split(separator: " ").filter { !$0.hasPrefix("id=") }.joined(separator: " ")
        }
        #expect(
            lines == [
                "insert \(name) a=\"x\" b=1", "update \(name) a=\"y\" was a=\"x\"",
                "update \(name) a=\"latest\" b=null was a=\"later\" b=1", "delete \(name) a=\"latest\" b=null",
            ])
        #expect(try b.rows("SELECT count(*) FROM item") == ["0"])
        // The other node applied nothing of what b had lost.
        #expect(try remoteChanges(a) == [])
    }

    /// A value that is unchanged in the next transaction is not bound again. Two encodings of one letter are different
    /// values.
    @Test func eachTransactionHasItsAuthorAndItsOriginNode() throws {
        let lab = try Lab()
        let nodes = [try lab.node("a"), try lab.node("caf\u{e9}"), try lab.node("cafe\u{301}")]
        let reader = try lab.node("reader")
        let authors = [nil, "app", "caf\u{e9}", "cafe\u{301}", "app", nil, nil, "app", "app"]
        let writers = [0, 0, 1, 1, 2, 2, 1, 1, 0]
        for (index, author) in authors.enumerated() {
            try nodes[writers[index]].write("INSERT INTO setting VALUES ('\(index)', 1)", author: author)
            try nodes[writers[index]].publish()
        }
        try reader.consume()
        func bytes(_ text: String?) -> [UInt8]? { text.map { Array($0.utf8) } }
        let origins = try reader.store.fetchHistory().compactMap(\.origin)
        #expect(origins.map { bytes($0.author) } == authors.map(bytes))
        #expect(origins.map { bytes($0.name) } == writers.map { bytes(["a", "caf\u{e9}", "cafe\u{301}"][$0]) })
        #expect(origins.map(\.node) == writers.map { nodes[$0].engine.node.uuid })
        #expect(origins.map(\.sequence) == [1, 2, 1, 2, 1, 2, 3, 4, 3])
    }

    /// Two nodes set a column to the same value without knowing of each other: the later one replaces the current
    /// value.
    @Test func aValueThatIsSetToItselfHasItsOldValueInTheHistory() throws {
        let lab = try lab("CREATE TABLE item(id INTEGER PRIMARY KEY, a, b)")
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO item VALUES (7, 'x', 1)")
        try exchange([a, b])
        try b.write("UPDATE item SET a = 'same', b = 2")
        try a.write("UPDATE item SET a = 'same', b = 3")
        try exchange([a, b])
        #expect(try remoteChanges(b).last == #"update item#7 a="same" b=3 was a="same" b=2"#)
    }

    @Test func aReferenceThatIsClearedLaterHasItsOldValueInTheHistory() throws {
        let lab = try lab(
            """
            CREATE TABLE trip(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT);
            CREATE TABLE note(id INTEGER PRIMARY KEY AUTOINCREMENT, trip INTEGER REFERENCES trip(id) ON DELETE SET NULL)
            """)
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO trip VALUES (4, 'x'); INSERT INTO note VALUES (9, 4)")
        try exchange([a, b])
        try a.write("DELETE FROM trip")
        try exchange([a, b])
        let note = try #require(try remoteChanges(b).first { $0.hasPrefix("update note") })
        #expect(note == "update note#9 trip=null was trip=4")
    }

    /// For other nodes, the renamed row is another row: the history has all values of the former one.
    @Test func aRenamedRowKeepsItsValuesInTheHistory() throws {
        var request = AttachRequest()
        request.keepsOldValues = true
        request.identities = ["item": ["code"]]
        let lab = try Lab("CREATE TABLE item(id INTEGER PRIMARY KEY, code TEXT UNIQUE, a)", request: request)
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO item VALUES (1, 'k', 'x')")
        try exchange([a, b])
        try a.write("UPDATE item SET code = 'l'")
        try exchange([a, b])
        // Each node assigns its own integer keys.
        let lines = try remoteChanges(b).map { $0.replacing("item#1", with: "item").replacing("item#2", with: "item") }
        #expect(
            lines == [
                #"insert item a="x" code="k""#, #"delete item a="x" code="k""#, #"insert item a="x" code="l""#,
            ])
        #expect(try b.rows("SELECT code, a FROM item") == ["l|x"])
    }

    @Test func byDefaultTheHistoryKeepsNoOldValues() throws {
        let lab = try Lab("CREATE TABLE item(id INTEGER PRIMARY KEY, a)")
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO item VALUES (7, 'x')")
        try a.write("UPDATE item SET a = 'y'")
        try exchange([a, b])
        #expect(try remoteChanges(b) == [#"insert item#7 a="x""#, #"update item#7 a="y""#])
    }
}
