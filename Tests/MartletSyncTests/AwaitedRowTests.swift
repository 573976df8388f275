import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Rows that refer to the integer key of a missing row whose table has a declared identity. A program without foreign
/// keys may write such rows first, or delete the row that they refer to.
@Suite struct AwaitedRowTests {
    private func referring(_ columns: String) throws -> Lab {
        var request = AttachRequest()
        request.identities = ["t1": columns.contains("TEXT") ? ["code", "a"] : ["code"]]
        return try Lab(
            """
            CREATE TABLE t1(i INTEGER PRIMARY KEY, code INT NOT NULL UNIQUE, a TEXT NOT NULL DEFAULT '',
              UNIQUE (code, a));
            CREATE TABLE t2(\(columns))
            """, request: request)
    }

    /// On the last of three nodes, a row refers to number 5, which no row has.
    private func nodesWithADanglingReference(_ lab: Lab) throws -> [TestNode] {
        let nodes = [try lab.node("a"), try lab.node("b"), try lab.node("c")]
        try nodes[0].write("INSERT INTO t1(code) VALUES (0), (4), (3), (-1)")
        try exchange(nodes)
        try nodes[2].foreignWrite("INSERT INTO t2(id, b) VALUES (4, 5)")
        try exchange(nodes)
        return nodes
    }

    private static let referringColumns = [
        "id INTEGER PRIMARY KEY REFERENCES t1(i), b INTEGER NOT NULL REFERENCES t2(id)",
        "id TEXT PRIMARY KEY NOT NULL, b INTEGER REFERENCES t1(i)",
        "id INTEGER PRIMARY KEY, b INTEGER NOT NULL REFERENCES t1(i)",
        "b INTEGER NOT NULL REFERENCES t1(i), id INTEGER NOT NULL, PRIMARY KEY (b, id)",
    ]

    /// Seed 12317: the number of the missing row was given to another row that arrived.
    @Test(arguments: referringColumns) func p117ANumberThatARowRefersToIsNotGivenToAnotherRow(columns: String) throws {
        let lab = try referring(columns)
        let nodes = try nodesWithADanglingReference(lab)
        try nodes[0].foreignWrite("INSERT INTO t1(code) VALUES (2)")
        try exchange(nodes)
        for node in nodes.dropFirst() {
            #expect(try StoreDigest.compute(node.store).entities == StoreDigest.compute(nodes[0].store).entities)
        }
        #expect(try nodes[2].rows("SELECT id, b FROM t2") == ["4|5"])
        #expect(try nodes[2].rows("SELECT code FROM t1 WHERE i = 5") == [])
    }

    /// The missing row is inserted later.
    @Test(arguments: referringColumns) func p117ARowInsertedAfterItsReferencesIsReferredToOnEveryNode(
        columns: String
    ) throws {
        let lab = try referring(columns)
        let nodes = try nodesWithADanglingReference(lab)
        try nodes[2].foreignWrite("INSERT INTO t1 VALUES (5, 2, 'x')")
        if columns.contains("t2(id)") { try nodes[2].foreignWrite("INSERT INTO t2(id, b) VALUES (5, 5)") }
        try exchange(nodes)
        for node in nodes {
            #expect(try StoreDigest.compute(node.store).entities == StoreDigest.compute(nodes[0].store).entities)
            #expect(try node.rows("SELECT code FROM t2 JOIN t1 ON i = b WHERE b <> t2.id") == ["2"], "\(node.name)")
        }
    }

    /// Other rows have the number on the other nodes.
    @Test(arguments: referringColumns) func p117TheNumberOfAMissingRowRefersToNoOtherRowElsewhere(columns: String)
        throws
    {
        let lab = try referring(columns)
        let nodes = [try lab.node("a"), try lab.node("b"), try lab.node("c")]
        try nodes[0].write("INSERT INTO t1(code) VALUES (1), (2), (3), (4), (5), (6)")
        try nodes[2].write("INSERT INTO t1(code) VALUES (11), (12), (13), (14)")
        try nodes[2].foreignWrite("INSERT INTO t2(id, b) VALUES (4, 5)")
        try nodes[2].publish()
        try exchange(Array(nodes[..<2]))
        for node in nodes[..<2] {
            #expect(try node.rows("SELECT code FROM t2 JOIN t1 ON i = b") == [], "\(node.name)")
        }
        try exchange(nodes)
        for node in nodes {
            #expect(try node.rows("SELECT code FROM t2 JOIN t1 ON i = b") == [], "\(node.name)")
            #expect(try StoreDigest.compute(node.store).entities == StoreDigest.compute(nodes[0].store).entities)
        }
        try nodes[2].foreignWrite("INSERT INTO t1 VALUES (5, 15, 'x')")
        if columns.contains("t2(id)") { try nodes[2].foreignWrite("INSERT INTO t2(id, b) VALUES (5, 5)") }
        try exchange(nodes)
        for node in nodes {
            #expect(try StoreDigest.compute(node.store).entities == StoreDigest.compute(nodes[0].store).entities)
            #expect(try node.rows("SELECT code FROM t2 JOIN t1 ON i = b WHERE b <> t2.id") == ["15"], "\(node.name)")
        }
    }
}
