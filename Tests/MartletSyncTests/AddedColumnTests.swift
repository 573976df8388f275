import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// A column that one node adds before another, and a row that both nodes insert (docs/decisions/0014).
@Suite struct AddedColumnTests {
    /// A table whose rows have the same row identity on every node that inserts them.
    enum Table: String, CaseIterable {
        case text = "key TEXT PRIMARY KEY NOT NULL, value"
        case withoutRowID = "key TEXT PRIMARY KEY NOT NULL, value) WITHOUT ROWID --"
        case integer = "key INTEGER PRIMARY KEY, value"
        case several = "key, value, part DEFAULT 'p', PRIMARY KEY(key, part)"
        case unique = "id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, value"

        /// The state of a node that has one row.
        func row(_ key: Int, _ value: String, weight: Int) -> String {
            switch self {
            case .text, .withoutRowID, .unique: "setting key='\(key)' value='\(value)' weight=\(weight)"
            case .integer: "setting key=\(key) value='\(value)' weight=\(weight)"
            case .several: "setting key=\(key) value='\(value)' part='p' weight=\(weight)"
            }
        }

        func lab() throws -> Lab {
            var request = AttachRequest()
            if self == .unique || self == .integer { request.identities = ["setting": ["key"]] }
            return try Lab(
                "CREATE TABLE setting(\(rawValue)\n)".replacing(") WITHOUT ROWID --\n)", with: ") WITHOUT ROWID"),
                request: request)
        }
    }

    private static let alter = "ALTER TABLE setting ADD COLUMN weight INTEGER DEFAULT 7"
    private static let insertOld = "INSERT INTO setting(key, value) VALUES (1, 'old')"
    private static let insertNew = "INSERT INTO setting(key, value, weight) VALUES (1, 'new', 816)"

    private func nodesOfWhichTheFirstLacksTheColumn(_ lab: Lab) throws -> (TestNode, TestNode, TestNode) {
        let nodes = (try lab.node("a"), try lab.node("b"), try lab.node("c"))
        for node in [nodes.1, nodes.2] { try node.store.alter(sql: Self.alter) }
        return nodes
    }

    /// - Parameter isClocked: whether the insert has its timestamp before the column is added.
    @Test(arguments: Table.allCases, [false, true]) func aValueFromANodeWithTheColumnSurvivesANewerInsertWithoutIt(
        table: Table, isClocked: Bool
    ) throws {
        let lab = try table.lab()
        let a = try lab.node("a")
        let b = try lab.node("b")
        try b.store.alter(sql: Self.alter)
        try b.write(Self.insertNew)
        try a.write(Self.insertOld)
        if isClocked { try a.publish() }
        try a.store.alter(sql: Self.alter)
        try exchange([a, b])
        try expectBoth(a, b, are: table.row(1, "old", weight: 816))
        #expect(try StoreDigest.compute(a.store).digest == StoreDigest.compute(b.store).digest)
    }

    @Test(arguments: Table.allCases) func anInsertWithTheColumnKeepsItsTimestampForIt(table: Table) throws {
        let lab = try table.lab()
        let (a, b, c) = try nodesOfWhichTheFirstLacksTheColumn(lab)
        // b inserts the row before a adds the column, and a applies it afterwards.
        try b.write(Self.insertNew)
        try a.write("INSERT INTO setting(key, value) VALUES (2, 'other')")
        try a.publish()
        try a.store.alter(sql: Self.alter)
        try exchange([a, b])
        // c inserts row 2 after this exchange, so its values win there. Row 1 keeps the values of b's insert.
        try c.write("INSERT INTO setting(key, value, weight) VALUES (2, 'mine', 5)")
        try exchange([a, b, c])
        try expectAll(
            [a, b, c],
            are: """
                \(table.row(1, "new", weight: 816))
                \(table.row(2, "mine", weight: 5))
                """)
    }

    @Test(arguments: Table.allCases) func theNewerOfTwoInsertsWithTheColumnWins(table: Table) throws {
        let lab = try table.lab()
        let (a, b, c) = try nodesOfWhichTheFirstLacksTheColumn(lab)
        try c.write("INSERT INTO setting(key, value, weight) VALUES (1, 'first', 1)")
        try b.write(Self.insertNew)
        try a.write("INSERT INTO setting(key, value) VALUES (2, 'other')")
        try a.publish()
        try a.store.alter(sql: Self.alter)
        // a has the row from b's insert, which is older than a's column. c's insert is older still.
        try exchange([a, b])
        try exchange([a, b, c])
        try expectAll(
            [a, b, c],
            are: """
                \(table.row(1, "new", weight: 816))
                \(table.row(2, "other", weight: 7))
                """)
    }

    @Test func rowsInsertedAfterAColumnWasAddedNeedNoTimestampForIt() throws {
        let lab = try Table.integer.lab()
        let a = try lab.node("a")
        try a.write(Self.insertOld)
        try a.store.alter(sql: Self.alter)
        try a.write("INSERT INTO setting VALUES (2, 'b', 3)")
        try a.publish()
        #expect(try a.rows("SELECT row, attrs IS NULL FROM _martlet_side_1") == ["1|1", "2|1"])
        #expect(try a.rows("SELECT name, added > 0 FROM _martlet_columns WHERE added IS NOT 0") == ["weight|1"])
    }

    @Test func aColumnAddedWhileNoAgentRunsGetsTheTimestampOfTheChangesBeforeIt() throws {
        let lab = try Table.integer.lab()
        let a = try lab.node("a")
        try a.write(Self.insertOld)
        try a.store.alter(sql: Self.alter)
        #expect(try a.rows("SELECT added IS NULL FROM _martlet_columns WHERE name = 'weight'") == ["1"])
        try a.write("INSERT INTO setting VALUES (2, 'b', 3)")
        try a.publish()
        #expect(
            try a.rows(
                """
                SELECT row, hlc <= (SELECT added FROM _martlet_columns WHERE name = 'weight') FROM _martlet_side_1
                """) == ["1|1", "2|0"])
    }
}
