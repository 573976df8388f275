import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Groups of rows that exclude each other: timestamps decide which group stays, not the order of arrival.
@Suite struct ContestTests {
    /// Two groups, `d` with `r` and `f` with `g`: `r` claims the key of `f`, and `g` that of `d`.
    struct Shape: Sendable, CustomTestStringConvertible {
        var name: String
        var schema: String
        var statements: [String]
        /// Whether a reference is the integer key of a row, and not its name.
        var isByNumber: Bool

        var testDescription: String { name }

        static let byNumber = Shape(
            name: "references by number",
            schema: """
                CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, head INTEGER NOT NULL REFERENCES item(id),
                  claim TEXT UNIQUE);
                """,
            statements: [
                "INSERT INTO item VALUES (1, 'd', 1, 'x')", "INSERT INTO item VALUES (2, 'f', 2, 'y')",
                "INSERT INTO item SELECT 3, 'r', id, 'y' FROM item WHERE name = 'd'",
                "INSERT INTO item SELECT 4, 'g', id, 'x' FROM item WHERE name = 'f'",
            ], isByNumber: true)
        static let byValue = Shape(
            name: "references by value",
            schema: """
                CREATE TABLE item(name TEXT PRIMARY KEY NOT NULL, head TEXT NOT NULL REFERENCES item(name),
                  claim TEXT UNIQUE);
                """,
            statements: [
                "INSERT INTO item VALUES ('d', 'd', 'x')", "INSERT INTO item VALUES ('f', 'f', 'y')",
                "INSERT INTO item VALUES ('r', 'd', 'y')", "INSERT INTO item VALUES ('g', 'f', 'x')",
            ], isByNumber: false)
    }

    @Test(arguments: [Shape.byNumber, .byValue], [true, false])
    func p140TheGroupWithTheNewerClaimStaysInEveryOrderOfArrival(_ shape: Shape, _ isLastNewest: Bool) throws {
        let lab = try Lab(shape.schema)
        let (left, right) = (try lab.node("left"), try lab.node("right"))
        // Each node has its own group before it receives the other one.
        func write(_ index: Int) throws {
            try [left, right][index % 2].write(shape.statements[index])
        }
        try write(0)
        try write(1)
        try write(isLastNewest ? 2 : 3)
        try write(isLastNewest ? 3 : 2)
        try left.publish()
        try right.publish()
        let messages = try lab.messages()
        let expected =
            if isLastNewest {
                """
                item name='f' head=\(shape.isByNumber ? "->" : "")'f' claim='y'
                item name='g' head=\(shape.isByNumber ? "->" : "")'f' claim='x'
                pending missingTarget item name='r' head=\(shape.isByNumber ? "->?" : "'d'") claim='y'
                pending unique item name='d' head=\(shape.isByNumber ? "->?" : "'d'") claim='x'
                """
            } else {
                """
                item name='d' head=\(shape.isByNumber ? "->" : "")'d' claim='x'
                item name='r' head=\(shape.isByNumber ? "->" : "")'d' claim='y'
                pending missingTarget item name='g' head=\(shape.isByNumber ? "->?" : "'f'") claim='x'
                pending unique item name='f' head=\(shape.isByNumber ? "->?" : "'f'") claim='y'
                """
            }
        for order in permutations(messages) {
            let reader = try lab.node("reader" + order.map { "\($0.position.offset)" }.joined())
            for message in order { try reader.receive([message], partition: Int32(message.position.offset)) }
            try expectState(reader, is: expected)
            #expect(try reader.rows("PRAGMA foreign_key_check") == [])
        }
        try exchange([left, right])
        try expectBoth(left, right, are: expected)
    }

    /// In a column without a type, a number is not equal to the text that looks like it.
    @Test func p140ARowRefersToItselfByTheCollationOfItsKey() throws {
        let schema = """
            CREATE TABLE item(code COLLATE RTRIM PRIMARY KEY NOT NULL, next NOT NULL REFERENCES item(code));
            """
        let lab = try Lab(schema)
        let (a, b, c) = (try lab.node("a"), try lab.node("b"), try lab.node("c"))
        try a.foreignWrite("INSERT INTO item VALUES (4, 4), ('4', 4), ('x  ', 'x')")
        try exchange([a, b])
        try b.foreignWrite("DELETE FROM item WHERE typeof(code) = 'integer'")
        try exchange([a, b])
        try exchange([a, b, c])
        try expectAll(
            [a, b, c],
            are: """
                item code='x  ' next='x'
                pending missingTarget item code='4' next=4
                """)
        for node in [a, b, c] {
            #expect(try node.rows("PRAGMA foreign_key_check") == [])
        }
    }

    /// Two rows need each other, and one takes the unique key of the other: neither can be there.
    @Test func p152ARowThatTakesTheKeyOfARowItNeedsInACircleWaits() throws {
        let lab = try Lab(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, mate INTEGER NOT NULL REFERENCES item(id), claim TEXT UNIQUE)")
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO item VALUES (2, 2, 'x'); UPDATE item SET id = 1, mate = 1")
        try exchange([a, b])
        try #require(try b.rows("SELECT id, mate FROM item") == ["2|2"])
        // The row now refers to the other one.
        try b.foreignWrite("UPDATE item SET id = 1; INSERT INTO item VALUES (2, 1, 'y')")
        try b.publish()
        try a.write("UPDATE item SET claim = 'y'")
        try a.publish()
        let expected = """
            pending missingTarget item mate=->? claim='y'
            pending missingTarget item mate=->? claim='y'
            """
        for order in permutations(try lab.messages()) {
            let reader = try lab.node("reader" + order.map { "\($0.position.offset)" }.joined())
            for message in order { try reader.receive([message], partition: Int32(message.position.offset)) }
            try expectState(reader, is: expected)
        }
        try exchange([a, b])
        try expectBoth(a, b, are: expected)
    }

    /// The IDs of these rows are made from other rows. They refer to each other by the integer key that they take from
    /// those rows, and any of them may come first.
    @Test func p145RowsThatNeedEachOtherAreInsertedByTheNumberInTheirID() throws {
        let lab = try Lab(
            """
            CREATE TABLE animal(id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE dog(id INTEGER PRIMARY KEY REFERENCES animal(id), friend INTEGER NOT NULL REFERENCES dog(id));
            """)
        let a = try lab.node("a")
        try a.write("INSERT INTO animal VALUES (2, 'Ash')")
        try a.write("INSERT INTO animal VALUES (3, 'Bea')")
        try a.write("INSERT INTO dog VALUES (3, 3), (2, 3)")
        try a.write("UPDATE dog SET friend = 2 WHERE id = 3")
        try a.publish()
        for order in permutations(try lab.messages()) {
            let reader = try lab.node("reader" + order.map { "\($0.position.offset)" }.joined())
            // The reader's own rows have these numbers.
            try reader.write("INSERT INTO animal VALUES (2, 'own'), (3, 'own too')")
            for message in order { try reader.receive([message], partition: Int32(message.position.offset)) }
            try expectState(
                reader,
                is: """
                    animal name='Ash'
                    animal name='Bea'
                    animal name='own too'
                    animal name='own'
                    dog id=->'Ash' friend=->'Bea'
                    dog id=->'Bea' friend=->'Ash'
                    """)
        }
    }

    /// The row '2' waits for a target that never comes. It must not be taken for the row 2, which the circle needs.
    @Test func p214ACircleIsNotHeldUpByAPendingRowWhoseKeyLooksLikeThatOfItsRow() throws {
        let lab = try Lab("CREATE TABLE item(code PRIMARY KEY NOT NULL, next NOT NULL REFERENCES item(code))")
        try expectInEveryOrder(
            lab,
            [
                "INSERT INTO item VALUES ('gone', 'gone'), ('2', 'gone')", "DELETE FROM item WHERE code = 'gone'",
                "INSERT INTO item VALUES (2, '4')", "INSERT INTO item VALUES ('4', 2)",
            ],
            """
            item code='4' next=2
            item code=2 next='4'
            pending missingTarget item code='2' next='gone'
            """)
    }

    /// Two pending rows have the code to which a row of the circle refers. One of them waits for a target that never
    /// comes.
    @Test func p214ACircleIsNotHeldUpByAPendingRowThatClaimsTheKeyOfItsRow() throws {
        let lab = try Lab(
            """
            CREATE TABLE part(name TEXT PRIMARY KEY NOT NULL, code TEXT UNIQUE,
              needs TEXT NOT NULL REFERENCES part(code));
            """)
        try expectInEveryOrder(
            lab,
            [
                "INSERT INTO part VALUES ('g', 'gone', 'gone'), ('x', 'k', 'gone')",
                "DELETE FROM part WHERE code = 'gone'",
                "INSERT INTO part VALUES ('y', 'k', 'm')", "INSERT INTO part VALUES ('z', 'm', 'k')",
            ],
            """
            part name='y' code='k' needs='m'
            part name='z' code='m' needs='k'
            pending missingTarget part name='x' code='k' needs='gone'
            """)
    }

    /// Runs each statement on one node in a transaction of its own, with foreign keys switched off, and expects the
    /// state there, and on nodes that receive the transactions in all orders.
    private func expectInEveryOrder(
        _ lab: Lab, _ statements: [String], _ expected: String, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let author = try lab.node("author")
        for sql in statements {
            try author.foreignWrite(sql)
            try author.publish()
        }
        try expectState(author, is: expected, sourceLocation: sourceLocation)
        for order in permutations(try lab.messages()) {
            let reader = try lab.node("reader" + order.map { "\($0.position.offset)" }.joined())
            for message in order { try reader.receive([message], partition: Int32(message.position.offset)) }
            try expectState(reader, is: expected, sourceLocation: sourceLocation)
            #expect(try reader.rows("PRAGMA foreign_key_check") == [], sourceLocation: sourceLocation)
        }
    }

    private func permutations<T>(_ items: [T]) -> [[T]] {
        guard items.count > 1 else { return [items] }
        return items.indices.flatMap { index in
            var rest = items
            let item = rest.remove(at: index)
            return permutations(rest).map { [item] + $0 }
        }
    }
}
