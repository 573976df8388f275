import Foundation
import GRDB
import MartletExport
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Keys and values of records, byte for byte.
@Suite struct EnvelopeTests {
    private static let node = NodeID(UUID(uuidString: "00000000-0000-0000-0000-00000000000A") ?? UUID())

    private func table(_ sql: String, _ request: AttachRequest = .init()) throws -> ExportTable {
        let directory = try TemporaryDirectory()
        let store = try Store.create(path: directory.path("a.sqlite"))
        try store.write { try $0.execute(sql: sql) }
        _ = try store.attach(request)
        let catalog = try store.read { try Catalog.load($0) }
        try store.close()
        let entity = try #require(catalog.entities.last)
        return ExportTable(entity, topic: TopicNames(prefix: "x").table(entity.name))
    }

    private func encoder(schemas: Bool = false) -> EnvelopeEncoder {
        EnvelopeEncoder(prefix: "x", version: "1.0", schemas: schemas)
    }

    private func value(_ table: ExportTable, _ values: [Value], schemas: Bool = false) throws -> String {
        let slots = Dictionary(uniqueKeysWithValues: values.enumerated().map { ($0 + 1, $1) })
        let record = ExportRecord(
            identity: StableID(values: [values[0]]), operation: .create, after: .init(number: nil, values: slots),
            stamp: nil, time: 5)
        return String(decoding: encoder(schemas: schemas).value(record, of: table, nil, now: 6), as: UTF8.self)
    }

    @Test(
        arguments: [
            (1_764_316_800_001, "2025-11-28T08:00:00.001Z"), (1_764_316_800_123, "2025-11-28T08:00:00.123Z"),
            (1_764_316_800_999, "2025-11-28T08:00:00.999Z"), (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
        ] as [(Int64, String)])
    func timesOfCloudEventsHaveTheirMilliseconds(milliseconds: Int64, text: String) throws {
        var configuration = ExportConfiguration()
        configuration.cloudEvents = true
        let writer = RecordWriter(configuration, TopicNames(prefix: "x"), version: "1.0")
        let table = try table("CREATE TABLE setting(key TEXT PRIMARY KEY NOT NULL, value)")
        let removal = writer.removal(key: Array(#"{"key":"a"}"#.utf8), of: table, now: milliseconds)
        let time = removal.first?.message.headers.first { $0.name == "ce_time" }
        #expect(time.map { String(decoding: $0.value, as: UTF8.self) } == text)
    }

    /// The row after a change, as JSON.
    private func after(_ table: ExportTable, _ values: [Value]) throws -> String {
        let text = try value(table, values)
        let start = try #require(text.range(of: #""after":"#)).upperBound
        let end = try #require(text.range(of: #","source""#)).lowerBound
        return String(text[start..<end])
    }

    @Test func aRecordHasAllParts() throws {
        let table = try table("CREATE TABLE pair(a TEXT NOT NULL, b INTEGER NOT NULL, c REAL, PRIMARY KEY(a, b))")
        let identity = StableID(values: [.text("k\"1"), .integer(-9_223_372_036_854_775_808)])
        let transaction = ExportTransaction(
            id: "t1", time: 1, author: "ann", origin: Self.node, originName: "a", sequence: 9)
        let record = ExportRecord(
            identity: identity, operation: .update,
            before: .init(number: nil, values: [1: .text("k\"1"), 2: .integer(.min), 3: .null]),
            after: .init(number: nil, values: [1: .text("k\"1"), 2: .integer(.min), 3: .real(0.1)]),
            stamp: Stamp(time: HybridTime(rawValue: 7), node: Self.node), time: 8)
        #expect(
            String(decoding: encoder().key(identity, of: table), as: UTF8.self)
                == #"{"a":"k\"1","b":-9223372036854775808}"#)
        #expect(
            String(
                decoding: encoder().value(record, of: table, (transaction, .init(total: 3, inTable: 2)), now: 10),
                as: UTF8.self)
                == #"{"before":{"a":"k\"1","b":-9223372036854775808,"c":null},"#
                + #""after":{"a":"k\"1","b":-9223372036854775808,"c":0.1},"#
                + #""source":{"version":"1.0","connector":"martlet","name":"x","ts_ms":8,"snapshot":"false","#
                + #""db":"main","table":"pair","sequence":"9","origin":"00000000-0000-0000-0000-00000000000a","#
                + #""origin_name":"a","author":"ann","hlc":7},"#
                + #""transaction":{"id":"t1","total_order":3,"data_collection_order":2},"op":"u","ts_ms":10}"#)
    }

    @Test func valuesKeepTheirMeaning() throws {
        let table = try table("CREATE TABLE v(k TEXT PRIMARY KEY NOT NULL, i INTEGER, r REAL, t TEXT, b BLOB, x)")
        #expect(
            try after(
                table,
                [
                    .text("a"), .integer(9_007_199_254_740_993), .real(.leastNonzeroMagnitude),
                    .text("é\u{0}\n\"\\\u{1f}"),
                    .blob([0, 255]), .real(.infinity),
                ])
                == #"{"k":"a","i":9007199254740993,"r":5e-324,"t":"é\u0000\n\"\\\u001f","b":"AP8=","x":1e999}"#)
        #expect(
            try after(table, [.text("b"), .text("no"), .integer(3), .rawText([0xff]), .text("t"), .null])
                == #"{"k":"b","i":"no","r":3.0,"t":"/w==","b":"t","x":null}"#)
        #expect(
            try after(table, [.text("c"), .real(1.5), .real(-.infinity), .blob([]), .null, .integer(4)])
                == #"{"k":"c","i":1.5,"r":-1e999,"t":"","b":null,"x":4}"#)
    }

    @Test func declaredTypesBecomeLogicalTypes() throws {
        let table = try table(
            """
            CREATE TABLE v(k UUID PRIMARY KEY NOT NULL, o BOOLEAN, d DATE, t DATETIME, j JSON, n DECIMAL(10, 2))
            """)
        #expect(
            try after(
                table,
                [
                    .text("u"), .integer(1), .text("2024-02-29"), .text("1969-12-31 23:59:59"), .text("{}"),
                    .integer(5),
                ]) == #"{"k":"u","o":true,"d":19782,"t":-1000,"j":"{}","n":5.0}"#)
        // What does not have the form that SQLite's functions give it stays as it is.
        #expect(
            try after(
                table,
                [
                    .text("u"), .integer(2), .text("2023-02-29"), .text("2024-01-01T10:00:00Z"), .null,
                    .text("many"),
                ])
                == #"{"k":"u","o":2,"d":"2023-02-29","t":"2024-01-01T10:00:00Z","j":null,"n":"many"}"#)
        #expect(
            try after(
                table, [.text("u"), .integer(0), .integer(3), .text("2024-01-01 10:00:00.250"), .null, .real(0.5)])
                == #"{"k":"u","o":false,"d":3,"t":1704103200250,"j":null,"n":0.5}"#)
    }

    @Test func schemasDescribeWhatTheRecordHas() throws {
        let table = try table("CREATE TABLE v(k TEXT PRIMARY KEY NOT NULL, i INTEGER, u UUID)")
        let key = encoder(schemas: true).key(StableID(values: [.text("a")]), of: table)
        #expect(
            String(decoding: key, as: UTF8.self)
                == #"{"schema":{"type":"struct","fields":[{"type":"string","optional":false,"field":"k"}],"#
                + #""optional":false,"name":"x.v.Key"},"payload":{"k":"a"}}"#)
        let template =
            #"{"type":"struct","fields":[{"type":"string","optional":false,"field":"k"},"#
            + #"{"type":"TYPE","optional":true,"field":"i"},"#
            + #"{"type":"string","optional":true,"name":"io.debezium.data.Uuid","version":1,"field":"u"}],"#
            + #""optional":true,"name":"x.v.Value","field":"FIELD"}"#
        func row(_ type: String, _ field: String) -> String {
            template.replacing("TYPE", with: type).replacing("FIELD", with: field)
        }
        let text = try value(table, [.text("a"), .text("no number"), .null], schemas: true)
        #expect(
            text.hasPrefix(
                #"{"schema":{"type":"struct","fields":[\#(row("int64", "before")),\#(row("string", "after")),"#))
        let value = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        let schema = try #require(value?["schema"] as? [String: Any])
        #expect(schema["name"] as? String == "x.v.Envelope")
        let fields = try #require(schema["fields"] as? [[String: Any]])
        #expect(
            fields.compactMap { $0["field"] as? String }
                == ["before", "after", "source", "transaction", "op", "ts_ms"])
        let payload = try #require(value?["payload"] as? [String: Any])
        #expect(Set(payload.keys) == Set(fields.compactMap { $0["field"] as? String }))
        // The fields of source and their types.
        let source = try #require(payload["source"] as? [String: Any])
        let described = try #require(fields[2]["fields"] as? [[String: Any]])
        #expect(Set(source.keys) == Set(described.compactMap { $0["field"] as? String }))
    }

    @Test func transactionsBeginAndEnd() throws {
        let encoder = encoder()
        #expect(String(decoding: encoder.transactionKey("t"), as: UTF8.self) == #"{"id":"t"}"#)
        #expect(
            String(decoding: encoder.transactionValue("t", counts: [("a", 2), ("b", 1)], now: 3), as: UTF8.self)
                == #"{"status":"END","id":"t","event_count":3,"data_collections":[{"data_collection":"a","#
                + #""event_count":2},{"data_collection":"b","event_count":1}],"ts_ms":3}"#)
        let end = self.encoder(schemas: true).transactionValue("t", counts: [], now: 3)
        let value = try JSONSerialization.jsonObject(with: Data(end)) as? [String: Any]
        let schema = value?["schema"] as? [String: Any]
        #expect(schema?["name"] as? String == "io.debezium.connector.common.TransactionMetadataValue")
        let names = (schema?["fields"] as? [[String: Any]])?.compactMap { $0["field"] as? String }
        #expect(names == ["status", "id", "event_count", "data_collections", "ts_ms"])
    }

    @Test func aColumnMayHaveTheNameOfTheAssignedID() throws {
        let table = try table("CREATE TABLE v(id INTEGER PRIMARY KEY, _Martlet_ID TEXT)")
        #expect(table.fields.map(\.name) == ["__martlet_id", "id", "_Martlet_ID"])
    }

    @Test func aRemovedRowIsKnownByItsKey() throws {
        let table = try table("CREATE TABLE v(k TEXT PRIMARY KEY NOT NULL, i INTEGER)")
        for schemas in [false, true] {
            let key = encoder(schemas: schemas).key(StableID(values: [.text(#"a,"payload":"#)]), of: table)
            let value = encoder().removal(key: key, of: table, now: 1)
            #expect(
                String(decoding: value, as: UTF8.self).hasPrefix(
                    #"{"before":{"k":"a,\"payload\":"},"after":null,"source":{"#), "schemas: \(schemas)")
        }
    }

    /// Somebody else wrote it, or the table had another key.
    @Test(arguments: ["", "no JSON", "[1]", #"{"k":5}"#, #"{"other":"a"}"#, #"{"k":"a","more":1}"#])
    func aKeyThatNobodyCouldReadAsARowIsNoRow(key: String) throws {
        let table = try table("CREATE TABLE v(k TEXT PRIMARY KEY NOT NULL, i INTEGER)")
        let value = encoder().removal(key: Array(key.utf8), of: table, now: 1)
        let record = try #require(try JSONSerialization.jsonObject(with: Data(value)) as? [String: Any])
        #expect(record["before"] is NSNull && record["op"] as? String == "d")
    }
}
