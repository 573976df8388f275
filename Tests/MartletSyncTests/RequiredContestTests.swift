import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Groups of rows that exclude each other, whose rows need each other only by a `CHECK` or through further rows.
@Suite struct RequiredContestTests {
    /// Two groups: those of `left` and those of `right`. Each node has its own before it receives the other one.
    struct Groups {
        var schema: String
        var left: [String]
        var right: [String]
    }

    /// `r` claims the key of `f`, and `g` that of `d`. The replies can't be without their heads.
    private func replies(byNumber: Bool) -> Groups {
        guard byNumber else {
            return Groups(
                schema: """
                    CREATE TABLE item(name TEXT PRIMARY KEY NOT NULL, kind TEXT NOT NULL,
                      head TEXT REFERENCES item(name), claim TEXT UNIQUE,
                      CHECK (kind <> 'reply' OR head IS NOT NULL));
                    """,
                left: [
                    "INSERT INTO item VALUES ('d', 'post', NULL, 'x')",
                    "INSERT INTO item VALUES ('r', 'reply', 'd', 'y')",
                ],
                right: [
                    "INSERT INTO item VALUES ('f', 'post', NULL, 'y')",
                    "INSERT INTO item VALUES ('g', 'reply', 'f', 'x')",
                ])
        }
        return Groups(
            schema: """
                CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, kind TEXT NOT NULL,
                  head INTEGER REFERENCES item(id), claim TEXT UNIQUE,
                  CHECK (kind <> 'reply' OR head IS NOT NULL));
                """,
            left: [
                "INSERT INTO item VALUES (1, 'd', 'post', NULL, 'x')",
                "INSERT INTO item VALUES (2, 'r', 'reply', 1, 'y')",
            ],
            right: [
                "INSERT INTO item VALUES (3, 'f', 'post', NULL, 'y')",
                "INSERT INTO item VALUES (4, 'g', 'reply', 3, 'x')",
            ])
    }

    @Test(arguments: [true, false], [true, false])
    func p232TheNewerClaimDecidesAlthoughOnlyACheckRequiresTheReferences(
        _ byNumber: Bool, _ isRightNewer: Bool
    ) throws {
        let arrow = byNumber ? "->" : ""
        func gone(_ name: String) -> String { byNumber ? "->?" : "'\(name)'" }
        let expected =
            if isRightNewer {
                """
                item name='f' kind='post' head=NULL claim='y'
                item name='g' kind='reply' head=\(arrow)'f' claim='x'
                pending missingTarget item name='r' kind='reply' head=\(gone("d")) claim='y'
                pending unique item name='d' kind='post' claim='x'
                """
            } else {
                """
                item name='d' kind='post' head=NULL claim='x'
                item name='r' kind='reply' head=\(arrow)'d' claim='y'
                pending missingTarget item name='g' kind='reply' head=\(gone("f")) claim='x'
                pending unique item name='f' kind='post' claim='y'
                """
            }
        try expectInEveryOrder(replies(byNumber: byNumber), isRightNewer: isRightNewer, expected)
    }

    /// `r` needs `m`, which needs `d` and claims no key itself.
    @Test func p232AChainOfRowsDecidesWhicheverOfThemComesLast() throws {
        let groups = Groups(
            schema: """
                CREATE TABLE item(name TEXT PRIMARY KEY NOT NULL, head TEXT NOT NULL REFERENCES item(name),
                  claim TEXT UNIQUE);
                """,
            left: [
                "INSERT INTO item VALUES ('d', 'd', 'x')", "INSERT INTO item VALUES ('m', 'd', NULL)",
                "INSERT INTO item VALUES ('r', 'm', 'y')",
            ],
            right: ["INSERT INTO item VALUES ('f', 'f', 'y')", "INSERT INTO item VALUES ('g', 'f', 'x')"])
        try expectInEveryOrder(
            groups, isRightNewer: false,
            """
            item name='d' head='d' claim='x'
            item name='m' head='d' claim=NULL
            item name='r' head='m' claim='y'
            pending missingTarget item name='g' head='f' claim='x'
            pending unique item name='f' head='f' claim='y'
            """)
    }

    /// `r` needs both `d` and `e`, which lose their keys to `g` and `h`.
    @Test func p232ACheckMayRequireSeveralRowsThatLostTheirKeys() throws {
        let groups = Groups(
            schema: """
                CREATE TABLE item(name TEXT PRIMARY KEY NOT NULL, kind TEXT NOT NULL, head TEXT REFERENCES item(name),
                  other TEXT REFERENCES item(name), claim TEXT UNIQUE,
                  CHECK (kind <> 'reply' OR (head IS NOT NULL AND other IS NOT NULL)));
                """,
            left: [
                "INSERT INTO item VALUES ('d', 'post', NULL, NULL, 'x')",
                "INSERT INTO item VALUES ('e', 'post', NULL, NULL, 'z')",
                "INSERT INTO item VALUES ('r', 'reply', 'd', 'e', 'y')",
            ],
            right: [
                "INSERT INTO item VALUES ('f', 'post', NULL, NULL, 'y')",
                "INSERT INTO item VALUES ('g', 'reply', 'f', 'f', 'x')",
                "INSERT INTO item VALUES ('h', 'reply', 'f', 'f', 'z')",
            ])
        try expectInEveryOrder(
            groups, isRightNewer: false,
            """
            item name='d' kind='post' head=NULL other=NULL claim='x'
            item name='e' kind='post' head=NULL other=NULL claim='z'
            item name='r' kind='reply' head='d' other='e' claim='y'
            pending missingTarget item name='g' kind='reply' head='f' other='f' claim='x'
            pending missingTarget item name='h' kind='reply' head='f' other='f' claim='z'
            pending unique item name='f' kind='post' claim='y'
            """)
    }

    /// `a` and `b` need each other. `a` also refers to `d`, which loses its key to `g`, but can do without.
    @Test func p232ACircleComesInWithoutARowThatLostItsKey() throws {
        let groups = Groups(
            schema: """
                CREATE TABLE item(name TEXT PRIMARY KEY NOT NULL, kind TEXT NOT NULL, head TEXT REFERENCES item(name),
                  other TEXT REFERENCES item(name), claim TEXT UNIQUE,
                  CHECK (kind <> 'reply' OR head IS NOT NULL));
                """,
            left: [
                "INSERT INTO item VALUES ('d', 'post', NULL, NULL, 'x')",
                "INSERT INTO item VALUES ('a', 'reply', 'b', 'd', NULL), ('b', 'reply', 'a', NULL, NULL)",
            ],
            right: ["INSERT INTO item VALUES ('g', 'post', NULL, NULL, 'x')"])
        try expectInEveryOrder(
            groups, isRightNewer: false,
            """
            item name='a' kind='reply' head='b' other=NULL claim=NULL
            item name='b' kind='reply' head='a' other=NULL claim=NULL
            item name='g' kind='post' head=NULL other=NULL claim='x'
            pending missingTarget item name='a' other='d'
            pending unique item name='d' kind='post' claim='x'
            """)
    }

    /// Each of the rows comes last once, and first once, in both directions.
    private func expectInEveryOrder(
        _ groups: Groups, isRightNewer: Bool, _ expected: String, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let lab = try Lab(groups.schema)
        let (left, right) = (try lab.node("left"), try lab.node("right"))
        for sql in groups.left.dropLast() { try left.write(sql) }
        for sql in groups.right.dropLast() { try right.write(sql) }
        // The row of each group that displaces one of the other is its last.
        let last = [(left, groups.left.suffix(1)), (right, groups.right.suffix(1))]
        for (node, statements) in isRightNewer ? last : Array(last.reversed()) {
            for sql in statements { try node.write(sql) }
        }
        try left.publish()
        try right.publish()
        let messages = try lab.messages()
        for direction in [messages, Array(messages.reversed())] {
            for first in direction.indices {
                let order = Array(direction[first...] + direction[..<first])
                let reader = try lab.node("reader" + order.map { "\($0.position.offset)" }.joined())
                for message in order { try reader.receive([message], partition: Int32(message.position.offset)) }
                try expectState(reader, is: expected, sourceLocation: sourceLocation)
                #expect(try reader.rows("PRAGMA foreign_key_check") == [], sourceLocation: sourceLocation)
            }
        }
        try exchange([left, right])
        try expectBoth(left, right, are: expected, sourceLocation: sourceLocation)
    }
}
