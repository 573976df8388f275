import GRDB

/// Functions that SQLite lacks, most of them on texts.
enum TextFunctions {
    static let contains = "martlet_contains"
    static let caseInsensitiveCompare = "martlet_compare"
    static let count = "martlet_count"
    /// Sorts the elements of a JSON array.
    static let sortedElements = "martlet_sorted"
    /// Rounds a number to a `Float`.
    static let singlePrecision = "martlet_single"
    /// Goes after a text that is a decimal number, so that it is compared as a number.
    static let decimalOrder = " COLLATE martlet_decimal"

    /// - Throws: SQLite's error if the file can't be read.
    static func add(to db: Database) throws {
        let encoding = try encoding(of: db)
        db.add(
            function: texts(contains, encoding) { text, part in part.isEmpty || text.localizedStandardContains(part) })
        db.add(
            function: texts(caseInsensitiveCompare, encoding) { text, other in
                text.caseInsensitiveCompare(other).rawValue
            })
        db.add(
            function: DatabaseFunction(count, argumentCount: 1, pure: true) { values in
                text(values[0], encoding)?.count
            })
        db.add(
            function: DatabaseFunction(sortedElements, argumentCount: 1, pure: true) { values in
                String.fromDatabaseValue(values[0]).map(JSONValue.sortingElements)
            })
        db.add(
            function: DatabaseFunction(singlePrecision, argumentCount: 1, pure: true) { values in
                Double.fromDatabaseValue(values[0]).map { Double(Float($0)) }
            })
        db.add(
            collation: DatabaseCollation("martlet_decimal") { a, b in
                guard let x = Decimal(string: a), let y = Decimal(string: b) else {
                    return a < b ? .orderedAscending : a == b ? .orderedSame : .orderedDescending
                }
                return x < y ? .orderedAscending : x == y ? .orderedSame : .orderedDescending
            })
    }

    /// Passes text as bytes: SQLite's functions end a text at a NUL.
    static func argument(_ text: SQLText) -> SQLText { .format("CAST(@ AS BLOB)", text) }

    /// The encoding that the bytes of a text have in this file.
    private static func encoding(of db: Database) throws -> String.Encoding {
        let name = try String.fetchOne(db, sql: "PRAGMA encoding")
        return name == "UTF-16le" ? .utf16LittleEndian : name == "UTF-16be" ? .utf16BigEndian : .utf8
    }

    private static func text(_ value: DatabaseValue, _ encoding: String.Encoding) -> String? {
        guard let bytes = Data.fromDatabaseValue(value) else { return nil }
        return encoding == .utf8
            ? String(decoding: bytes, as: UTF8.self) : String(data: bytes, encoding: encoding)
    }

    /// A function of two texts. Returns NULL if either isn't a text.
    private static func texts(
        _ name: String, _ encoding: String.Encoding,
        _ body: @escaping @Sendable (String, String) -> any DatabaseValueConvertible
    ) -> DatabaseFunction {
        DatabaseFunction(name, argumentCount: 2, pure: true) { values in
            guard let a = text(values[0], encoding), let b = text(values[1], encoding) else { return nil }
            return body(a, b)
        }
    }
}
