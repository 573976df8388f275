import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Nodes that assign IDs in ascending order, beside nodes that assign them in random order, copies, and forks.
@Suite struct AscendingIDSyncTests {
    private static let schema = """
        CREATE TABLE city(id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE leg(id INTEGER PRIMARY KEY, start INTEGER REFERENCES city(id), stop INTEGER REFERENCES city(id));
        """

    /// Makes a node assign IDs as before format 15.
    private func age(_ node: TestNode) throws {
        try node.foreignWrite("DELETE FROM _martlet_meta WHERE key = 'first_ascending'")
        try node.restart()
    }

    /// Migrates the store of such a node.
    private func migrate(_ node: TestNode) throws {
        try node.foreignWrite(OldFormat.sql(store: 14))
        try node.restart()
        #expect(try node.value(named: MetaKey.format) == 15)
    }

    private func cities(_ node: TestNode) throws -> [String] { try node.rows("SELECT name FROM city ORDER BY name") }

    private func inserts(_ node: TestNode) throws -> [HistoryChange] {
        try node.store.fetchHistory().flatMap(\.changes).filter { $0.kind == .insert }
    }

    /// Whether the ID is the one that ascends, as far as it tells.
    private func ascends(_ change: HistoryChange, on node: TestNode) -> Bool {
        let ascending = AscendingID(namespace: node.store.identifier).id(.inserted, change: change.id, time: 0)
        return ascending != nil && change.identity?.bytes.prefix(12) == ascending?.bytes.prefix(12)
    }

    /// A second store with the node's current contents and its identity.
    private func copy(_ node: TestNode, _ name: String, in lab: Lab) throws -> TestNode {
        let file = lab.directory.path("\(name)-backup.sqlite")
        try node.backUp(to: file)
        return try TestNode(name, bus: lab.bus, directory: lab.directory, schema: "", copyOf: file)
    }

    @Test func nodesWithBothKindsOfIDsConverge() throws {
        let lab = try Lab(Self.schema)
        let (old, new) = (try lab.node("old"), try lab.node("new"))
        try age(old)
        try old.write("INSERT INTO city VALUES (1, 'Oslo'), (2, 'Bonn')")
        try new.write("INSERT INTO city VALUES (1, 'Rome'), (2, 'Bern'); INSERT INTO leg VALUES (1, 1, 2)")
        try exchange([old, new])
        #expect(try inserts(old).prefix(2).allSatisfy { !ascends($0, on: old) })
        #expect(try inserts(new).prefix(2).allSatisfy { ascends($0, on: new) })
        // Each changes and removes rows of the other.
        try old.write("UPDATE city SET name = 'Roma' WHERE name = 'Rome'; DELETE FROM city WHERE name = 'Bonn'")
        try new.foreignWrite("UPDATE city SET name = 'Kristiania' WHERE name = 'Oslo'")
        try new.foreignWrite("INSERT INTO city VALUES (9, 'Lyon')")
        try exchange([old, new])
        #expect(try cities(old) == ["Bern", "Kristiania", "Lyon", "Roma"])
        try expectSame([old, new])
        // The old node is upgraded, and an ID that its history has told is the one that the row gets.
        try old.foreignWrite("INSERT INTO city VALUES (50, 'Kiel')")
        let told = try #require(inserts(old).last)
        let kept = try old.store.identities(of: "city")
        try migrate(old)
        try old.write("INSERT INTO city VALUES (51, 'Metz')")
        try exchange([old, new])
        let ids = try old.store.identities(of: "city")
        #expect(ids.filter { $0.key < 50 } == kept)
        #expect(ids[50] == told.identity)
        #expect(try inserts(old).last { $0.row == 51 }.map { ascends($0, on: old) } == true)
        try expectSame([old, new])
        let late = try lab.node("late")
        for message in try lab.messages().reversed() { try late.receive([message]) }
        try expectSame([old, new, late])
        #expect(
            try late.rows("SELECT s.name, t.name FROM leg JOIN city s ON s.id = start JOIN city t ON t.id = stop")
                == ["Roma|Bern"])
    }

    @Test func theHistoryTellsTheIDThatStampingStores() throws {
        let lab = try Lab(Self.schema)
        let node = try lab.node("a")
        try node.foreignWrite(
            "INSERT INTO city VALUES (4, 'Oslo'); UPDATE city SET id = 5; INSERT INTO city VALUES (4, 'Rome')")
        let told = try inserts(node).map(\.identity)
        // Another process does the stamping.
        try node.restart()
        try node.publish()
        let ids = try node.store.identities(of: "city")
        #expect([ids[5], ids[4]] == told)
        #expect(try inserts(node).map(\.identity) == told)
    }

    /// The copy stamps a row before anybody notices that it is one: with the same change ID, in the same namespace.
    @Test func aCopyThatStampsBeforeItForksSharesNoID() throws {
        let lab = try Lab(Self.schema)
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO city VALUES (1, 'Oslo')")
        try exchange([a, b])
        let c = try copy(a, "c", in: lab)
        try a.write("INSERT INTO city VALUES (2, 'Rome')")
        try c.write("INSERT INTO city VALUES (2, 'Bern')")
        #expect(try inserts(a).last?.id == inserts(c).last?.id)
        try b.write("INSERT INTO city VALUES (3, 'Kiel')")
        try b.publish()
        try c.consume()
        #expect(try c.store.identities(of: "city")[2] != nil)
        _ = try c.engine.fork()
        try c.restart()
        try c.write("INSERT INTO city(name) VALUES ('Metz')")
        try exchange([a, b, c])
        for node in [a, b, c] { #expect(try cities(node) == ["Bern", "Kiel", "Metz", "Oslo", "Rome"]) }
        try expectSame([a, b, c])
    }

    /// Nodes of both kinds insert and delete, are copied and forked, and are upgraded.
    @Test(arguments: 1...12 as ClosedRange<UInt64>) func noRowOfAForkIsTakenForAnother(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        let lab = try Lab("CREATE TABLE city(id INTEGER PRIMARY KEY, name TEXT)", partitions: 1 + random.below(3))
        var nodes = [try lab.node("a"), try lab.node("b")]
        try age(nodes[0])
        var names: Set<String> = []
        for step in 0..<30 {
            let node = random.pick(nodes)
            switch random.below(8) {
            case 0...3:
                let name = "city \(step)"
                names.insert(name)
                if random.once(in: 2) {
                    try node.write("INSERT INTO city(name) VALUES ('\(name)')")
                } else {
                    try node.foreignWrite("INSERT INTO city(name) VALUES ('\(name)')")
                }
            case 4:
                guard let name = try cities(node).last else { continue }
                names.remove(name)
                try node.write("DELETE FROM city WHERE name = '\(name)'")
            case 5: try node.publish()
            case 6: try node.consume()
            default:
                guard nodes.count < 5 else { continue }
                // What is not stamped yet would belong to both.
                try exchange(nodes)
                let fork = try copy(node, "fork\(step)", in: lab)
                _ = try fork.engine.fork()
                try fork.restart()
                nodes.append(fork)
            }
        }
        try exchange(nodes)
        try migrate(nodes[0])
        for node in nodes {
            let name = "last of \(node.name)"
            names.insert(name)
            try node.write("INSERT INTO city(name) VALUES ('\(name)')")
        }
        try exchange(nodes)
        for node in nodes { #expect(try cities(node) == names.sorted(), "\(node.name)") }
        try expectSame(nodes)
    }

    /// A program without foreign keys writes a row before both of the rows that it refers to.
    @Test(arguments: [[], ["name"]] as [[String]], [false, true])
    func aRowMayReferToTwoMissingRows(identity: [String], isOld: Bool) throws {
        var request = AttachRequest()
        request.identities = ["city": identity]
        let lab = try Lab(
            """
            CREATE TABLE city(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
            CREATE TABLE leg(
              id INTEGER PRIMARY KEY, start INTEGER REFERENCES city(id), stop INTEGER REFERENCES city(id));
            """, request: request)
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        if isOld { try age(a) }
        try b.write("INSERT INTO city VALUES (5, 'Bern'), (6, 'Kiel')")
        try a.foreignWrite("INSERT INTO leg VALUES (1, 5, 6)")
        try a.publish()
        try b.consume()
        #expect(try b.rows("SELECT start, stop FROM leg") == ["NULL|NULL"])
        try a.foreignWrite("INSERT INTO city VALUES (6, 'Rome'), (5, 'Oslo')")
        try exchange([a, b])
        for node in [a, b] {
            #expect(
                try node.rows("SELECT s.name, t.name FROM leg JOIN city s ON s.id = start JOIN city t ON t.id = stop")
                    == ["Oslo|Rome"], "\(node.name)")
        }
        #expect(try StoreDigest.compute(a.store).entities == StoreDigest.compute(b.store).entities)
    }
}
