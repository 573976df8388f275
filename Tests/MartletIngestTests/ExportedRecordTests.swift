import GRDB
import MartletBus
import MartletCore
import MartletExport
import MartletIngest
import MartletStore
import MartletTestSupport
import Testing

/// What the export writes, ingest reads: the same keys and the same values.
@Suite struct ExportedRecordTests {
    private static let declarations: KeyValuePairs<String, String> = [
        "k": "TEXT PRIMARY KEY NOT NULL", "i": "INTEGER", "r": "REAL", "n": "DECIMAL(10, 2)", "t": "TEXT", "x": "",
        "b": "BLOB", "o": "BOOLEAN", "d": "DATE", "s": "DATETIME", "j": "JSON", "u": "UUID", "m": "TIME",
    ]

    /// Rows as SQLite stores them: nothing that it would convert.
    private static let rows: [[Value]] = [
        [
            .text("a"), .integer(.max), .real(0.1), .integer(5), .text("é\u{0}\n\"\\"), .text("12"), .blob([0, 255]),
            .integer(1), .text("2024-02-29"), .text("1969-12-31 23:59:59.999"), .text("{}"), .text("0-0-0-0"),
            .text("10:00:00"),
        ],
        [
            .text(""), .integer(.min), .real(.leastNonzeroMagnitude), .real(0.5), .text(""), .real(1.5), .blob([]),
            .integer(0), .text("0000-01-01"), .text("9999-12-31 00:00:00"), .integer(7), .text("x"), .text("x"),
        ],
        [
            .text("b"), .integer(9_007_199_254_740_993), .real(-1e300), .real(1e300), .text("12"), .integer(-1),
            .blob([1, 2, 3]), .integer(2), .text("today"), .text("2024-01-01T10:00:00Z"), .text("[1.50]"), .null,
            .null,
        ],
        [.text("c")] + [Value](repeating: .null, count: 12),
        [
            .text("d"), .text("many"), .real(3), .text("n/a"), .text("AQ=="), .text("AQ=="), .null, .text("yes"),
            .text("2023-02-29"), .text("2024-01-01 24:00:00"), .real(2.5), .text("12-"), .text("24:00:00"),
        ],
        [
            .text("e"), .blob([1]), .blob([]), .text("1,5"), .blob([255]), .blob([7]), .text("AQ=="), .blob([0]),
            .integer(19_000), .integer(1_700_000_000), .text("{x"), .blob([1, 2]), .integer(36_000),
        ],
        [
            .text("f"), .real(1.5), .text("1e3x"), .blob([4]), .text("x"), .text("12"), .integer(5), .real(0.5),
            .real(0.5), .real(1.5), .blob([9]), .integer(3), .blob([0]),
        ],
    ]

    @Test(arguments: [true, false])
    func recordsComeBackAsTheyWere(schemas: Bool) throws {
        let entity = try entity()
        let table = ExportTable(entity, topic: "x.v")
        let encoder = EnvelopeEncoder(prefix: "x", version: "1.0", schemas: schemas)
        let decoder = RecordDecoder(
            mapping: TableMapping(topic: "x.v", table: "v"),
            types: Dictionary(uniqueKeysWithValues: entity.columns.map { ($0.name, $0.declaredType) }))
        for row in Self.rows {
            let identity = StableID(values: [row[0]])
            let slots = Dictionary(uniqueKeysWithValues: zip(entity.columns.map(\.slot), row))
            let record = ExportRecord(
                identity: identity, operation: .update, before: .init(number: nil, values: slots),
                after: .init(number: nil, values: slots), stamp: nil, time: 8)
            let event = try #require(
                try decoder.decode(
                    key: encoder.key(identity, of: table), value: encoder.value(record, of: table, nil, now: 9),
                    types: TypeHeaders.headers(record, of: table).first { $0.name == "martlet-types" }?.value))
            let expected = Dictionary(uniqueKeysWithValues: zip(entity.columns.map(\.name), row))
            #expect(event.after == expected && event.before == expected)
            #expect(event.key == ["k": row[0]] && event.operation == .update && event.milliseconds == 8)
        }
    }

    @Test(arguments: [true, false])
    func deletesAndTransactionsAreUnderstood(schemas: Bool) throws {
        let entity = try entity()
        let table = ExportTable(entity, topic: "x.v")
        let encoder = EnvelopeEncoder(prefix: "x", version: "1.0", schemas: schemas)
        let decoder = RecordDecoder(mapping: TableMapping(topic: "x.v", table: "v"), types: ["k": "TEXT"])
        let key = encoder.key(StableID(values: [.text("a")]), of: table)
        let removal = try decoder.decode(key: key, value: encoder.removal(key: key, of: table, now: 5))
        #expect(removal?.operation == .delete && removal?.key == ["k": .text("a")])
        #expect(try decoder.decode(key: key, value: nil)?.operation == SourceEvent.Operation.null)
        for counts in [nil, [(table: "v", count: Int64(1))]] {
            let value = encoder.transactionValue("t", counts: counts, now: 3)
            #expect(try decoder.decode(key: encoder.transactionKey("t"), value: value) == nil)
        }
    }

    private func entity() throws -> Entity {
        let directory = try TemporaryDirectory()
        let store = try Store.create(path: directory.path("a.sqlite"))
        let columns = Self.declarations.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        try store.write { try $0.execute(sql: "CREATE TABLE v(\(columns))") }
        _ = try store.attach(.init())
        let catalog = try store.read { try Catalog.load($0) }
        try store.close()
        return try #require(catalog.entities.last)
    }
}
