import GRDB
import MartletStore
import Testing

/// What a column stores is computed as SQLite does it.
@Suite struct AffinityTests {
    private static let values: [Value] = [
        .integer(2), .real(2), .text("2"), .text("02"), .text(" 2 "), .text("+2"), .text("2.0"), .text("2."),
        .text(".5"), .text("1e3"), .text("1E-2"), .text("abc"), .text(""), .text("2x"), .text("0x10"), .text("inf"),
        .text("\t3\n"), .real(1e20), .text("1e20"), .text("100000000000000000000"), .integer(9_007_199_254_740_993),
        .text("9007199254740993"), .real(0.1), .text("0.1"), .real(-0x1p63), .real(0x1p62), .real(1e15),
        .blob([0x32]), .null,
    ]

    @Test(arguments: ["INTEGER", "TEXT", "BLOB", "", "REAL", "NUMERIC", "ANY", "any"])
    func valuesAreConvertedAsAColumnOfTheTypeStoresThem(_ type: String) throws {
        try expectStored(type, isStrict: false)
    }

    @Test func aStrictTableStoresValuesOfAnyTypeUnchanged() throws { try expectStored("ANY", isStrict: true) }

    private func expectStored(_ type: String, isStrict: Bool) throws {
        let affinity = Affinity(declaredType: type, isStrict: isStrict)
        let queue = try DatabaseQueue()
        try queue.write { db in
            try db.execute(sql: "CREATE TABLE item(v \(type))\(isStrict ? " STRICT" : "")")
            for value in Self.values {
                let insert = try PreparedStatement(db, "INSERT INTO item VALUES (?1)")
                insert.bind(1, value)
                try insert.run()
                let read = try PreparedStatement(db, "SELECT v FROM item")
                let stored = try read.first { $0.value(0) }
                #expect(affinity.converted(value) == stored, "\(value)")
                try db.execute(sql: "DELETE FROM item")
            }
        }
    }
}
