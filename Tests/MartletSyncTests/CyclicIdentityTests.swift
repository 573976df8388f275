import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Rows that are identified by a reference to a row of their own table. References may lead back to the row, and there
/// may be many.
@Suite(.timeLimit(.minutes(5))) struct CyclicIdentityTests {
    private static let schema = """
        CREATE TABLE folder(id INTEGER PRIMARY KEY, parent INTEGER REFERENCES folder(id), name TEXT NOT NULL,
          UNIQUE(parent, name));
        CREATE TABLE note(key TEXT PRIMARY KEY NOT NULL, folder INTEGER REFERENCES folder(id));
        """

    /// Each row with the one that it refers to. The numbers of rows differ from node to node.
    private static let names = """
        SELECT folder.name, other.name FROM folder LEFT JOIN folder AS other ON folder.parent = other.id ORDER BY 1
        """

    private let lab: Lab

    init() throws {
        var request = AttachRequest()
        request.identities = ["folder": ["parent", "name"]]
        lab = try Lab(Self.schema, request: request)
    }

    @Test func p236ARowThatRefersToItselfReachesOtherNodes() throws {
        let nodes = try ["a", "b"].map { try lab.node($0) }
        try nodes[0].write("INSERT INTO folder VALUES (1, 1, 'root'); INSERT INTO note VALUES ('k', 1), ('l', NULL)")
        try exchange(nodes)
        try nodes[1].write("UPDATE folder SET name = name || '!'; INSERT INTO folder VALUES (7, 1, 'sub')")
        try exchange(nodes)
        try expectSame(nodes)
        for node in nodes {
            #expect(try node.rows("SELECT name, parent = id FROM folder ORDER BY id") == ["root!|1", "sub|0"])
            let notes = try node.rows("SELECT key, name FROM note LEFT JOIN folder ON folder = id")
            #expect(notes == ["k|root!", "l|NULL"])
        }
    }

    @Test func p236RowsThatReferToEachOtherReachOtherNodes() throws {
        let nodes = try ["a", "b"].map { try lab.node($0) }
        try nodes[0].write("INSERT INTO folder VALUES (10, 11, 'e'), (11, 10, 'f')")
        try exchange(nodes)
        try nodes[1].write("UPDATE folder SET name = name || '!'")
        try exchange(nodes)
        try expectSame(nodes)
        for node in nodes { #expect(try node.rows(Self.names) == ["e!|f!", "f!|e!"]) }
    }

    /// Martlet can't assign an ID: it would have to be the same in all copies of the file.
    @Test func p236RowsThatAreAttachedInACircleStopNothing() throws {
        let rows = "INSERT INTO folder VALUES (1, 1, 'root'), (2, 3, 'a'), (3, 2, 'b')"
        let a = try lab.node("a", schema: Self.schema + rows)
        let b = try lab.node("b")
        try a.write("INSERT INTO note VALUES ('k', 1)")
        _ = try a.store.fetchHistory()
        try exchange([a, b])
        #expect(try b.rows(Self.names) == [])
        try a.write("UPDATE folder SET name = name || '!'")
        try exchange([a, b])
        #expect(try b.rows(Self.names) == ["root!|root!"])
        #expect(try b.rows("SELECT key, name FROM note JOIN folder ON folder = id") == ["k|root!"])
        #expect(try b.store.quarantined() == [])
    }

    private static let depths = """
        WITH RECURSIVE path(id, depth) AS (SELECT id, 1 FROM folder WHERE parent IS NULL
          UNION ALL SELECT folder.id, depth + 1 FROM folder JOIN path ON folder.parent = path.id)
        SELECT group_concat(depth || name, ',') FROM path JOIN folder USING (id)
        """

    /// Messages can't be decoded if they nest deeper than 100 messages in each other.
    @Test(arguments: WireEncoding.allCases) func p236RowsInManyLevelsReachOtherNodes(encoding: WireEncoding) throws {
        let nodes = try ["a", "b"].map { try lab.node($0) { $0.encoding = encoding } }
        for id in 1...70 {
            try nodes[0].write("INSERT INTO folder VALUES (\(id), \(id == 1 ? "NULL" : "\(id - 1)"), 'f')")
        }
        try exchange(nodes)
        try expectSame(nodes)
        let expected = [(1...70).map { "\($0)f" }.joined(separator: ",")]
        for node in nodes { #expect(try node.rows(Self.depths) == expected) }
        // The IDs of the rows below contain the one of this.
        try nodes[1].write(
            "UPDATE folder SET name = 'g' WHERE parent IS NULL; UPDATE folder SET name = 'h' WHERE name = 'f'")
        try exchange(nodes)
        try expectSame(nodes)
        for node in nodes {
            #expect(try node.rows(Self.depths).first?.hasPrefix("1g,2h,3h,") ?? false)
            #expect(try node.store.quarantined() == [])
        }
    }
}
