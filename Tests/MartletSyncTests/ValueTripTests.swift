import MartletSync
import MartletTestSupport
import Testing

/// Values of every kind arrive unchanged.
@Suite struct ValueTripTests {
    static let literals = [
        "NULL", "0", "1", "-1", "9007199254740993", "9223372036854775807", "-9223372036854775808", "0.0", "-0.0", "0.1",
        "1e308", "5e-324", "9e999", "-9e999", "9e999 - 9e999", "1.0", "''", "'a'", "'1'", "char(0)",
        "'a' || char(0) || 'b'",
        "'ÄÖ 🐦 日本'", "CAST(x'ff' AS TEXT)", "CAST(x'61c328' AS TEXT)", "x''", "x'00'", "x'00ff'", "zeroblob(3000)",
        "'{\"a\": 1}'",
        "-12345678901234567", "'1969-12-31'", "-0.5e-300", "char(13, 10, 9, 34, 39, 92)", "char(65533, 65535, 1114111)",
    ]

    @Test(arguments: WireEncoding.allCases, [900_000, 1000])
    func p25ValuesOfEveryKindSurviveTheTrip(encoding: WireEncoding, size: Int) throws {
        let lab = try Lab(
            """
            CREATE TABLE plain(id INTEGER PRIMARY KEY, v, t TEXT, i INTEGER, r REAL, b BLOB, n NUMERIC);
            CREATE TABLE named(v BLOB PRIMARY KEY NOT NULL, w) WITHOUT ROWID;
            """)
        let a = try lab.node("a") {
            $0.encoding = encoding
            $0.maxMessageBytes = size
        }
        let b = try lab.node("b")
        let inserts = Self.literals.enumerated().map { index, literal in
            "INSERT INTO plain VALUES (\(index + 1), \(Array(repeating: literal, count: 6).joined(separator: ", ")));"
                + "INSERT OR IGNORE INTO named VALUES (\(literal), \(literal));"
        }
        try a.write(inserts.joined())
        // The same by an update.
        try a.write("INSERT INTO plain(id) VALUES (100)")
        for literal in Self.literals {
            try a.write(
                """
                UPDATE plain SET v = \(literal), t = \(literal) WHERE id = 100;
                INSERT INTO plain(v) VALUES (NULL);
                UPDATE plain SET v = \(literal) WHERE id = last_insert_rowid()
                """
            )
        }
        try exchange([a, b])
        func dump(_ node: TestNode) throws -> [String] {
            let plain = ["v", "t", "i", "r", "b", "n"].map { "typeof(\($0)), quote(\($0)), hex(\($0))" }.joined(
                separator: ", ")
            return try node.rows("SELECT \(plain) FROM plain ORDER BY id")
                + node.rows("SELECT typeof(v), hex(v), quote(v), typeof(w), hex(w), quote(w) FROM named ORDER BY v")
        }
        #expect(try dump(a) == dump(b))
        #expect(try dump(b).count > 2 * Self.literals.count)
        #expect(try b.store.quarantined() == [])
        try b.write("UPDATE named SET w = 'touched'")
        try exchange([a, b])
        #expect(try a.rows("SELECT count(*) FROM named WHERE w IS NOT 'touched'") == ["0"])
    }

    @Test func p25NamesWithQuotesSpacesAndOtherScriptsArrive() throws {
        let lab = try Lab(
            """
            CREATE TABLE "o""dd näme"("id" INTEGER PRIMARY KEY, "se""lect" TEXT,
              "日 本" INTEGER REFERENCES "o""dd näme"("id"));
            CREATE TABLE "order"("group by" TEXT PRIMARY KEY NOT NULL, "a'b" UNIQUE);
            """)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write(
            #"INSERT INTO "o""dd näme" VALUES (1, 'x', NULL), (2, 'y', 1); INSERT INTO "order" VALUES ('g', 1)"#)
        try b.write(#"INSERT INTO "order" VALUES ('h', 1)"#)
        try exchange([a, b])
        try b.write(#"UPDATE "o""dd näme" SET "se""lect" = 'z', "日 本" = "id""#)
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                o"dd näme se"lect='z' 日 本=->'z'
                o"dd näme se"lect='z' 日 本=->'z'
                order group by='h' a'b=1
                pending unique order group by='g' a'b=1
                """)
    }
}
