import MartletCore
import MartletIngest
import Testing

/// Which change of which row a record is.
@Suite struct RecordDecoderTests {
    private let decoder = RecordDecoder(
        mapping: TableMapping(topic: "pg.public.product", table: "product"),
        types: ["id": "INTEGER", "name": "TEXT", "price": "REAL"])
    private let key = #"{"id":7}"#
    private let row = #"{"id":7,"name":"pen","price":1.5}"#
    private let values: [String: Value] = ["id": .integer(7), "name": .text("pen"), "price": .real(1.5)]

    // MARK: Operations

    @Test(arguments: [("c", SourceEvent.Operation.create), ("r", .read), ("u", .update)])
    func aRowAfterAChange(code: String, operation: SourceEvent.Operation) throws {
        let event = try decoder.decode(key: key, value: RecordText.envelope(code, after: row))
        #expect(
            event
                == SourceEvent(
                    operation: operation, key: ["id": .integer(7)], after: values, milliseconds: 1_764_316_800_000))
    }

    @Test func anUpdateMayHaveTheRowBefore() throws {
        let value = RecordText.envelope("u", before: #"{"id":7,"name":"ink","price":null}"#, after: row)
        let event = try decoder.decode(key: key, value: value)
        #expect(event?.before == ["id": .integer(7), "name": .text("ink"), "price": .null])
        #expect(event?.after == values)
    }

    @Test func aDeleteHasNoRowAfter() throws {
        let before = #"{"id":7,"name":null,"price":null}"#
        let event = try decoder.decode(key: key, value: RecordText.envelope("d", before: before))
        #expect(event?.operation == .delete)
        #expect(event?.before == ["id": .integer(7), "name": .null, "price": .null])
        #expect(event?.after == nil)
        let bare = try decoder.decode(key: key, value: RecordText.envelope("d"))
        #expect(bare?.operation == .delete && bare?.before == nil && bare?.key == ["id": .integer(7)])
    }

    /// The converter writes no bytes for a null record, or, in some versions, a null with a schema.
    @Test(arguments: [nil, "null", #"{"schema":null,"payload":null}"#])
    func aRecordWithoutAValueHasAKeyOnly(value: String?) throws {
        let event = try decoder.decode(key: key, value: value)
        #expect(event == SourceEvent(operation: .null, key: ["id": .integer(7)]))
    }

    @Test func schemasOfKeyAndValueAreIndependent() throws {
        let schema = RecordText.structure(["id": #""type":"int32""#])
        let rows = RecordText.envelopeSchema([
            "id": #""type":"int32""#, "name": #""type":"string""#, "price": #""type":"double""#,
        ])
        let plain = RecordText.envelope("c", after: row)
        for key in [key, RecordText.withSchema(schema, key)] {
            for value in [plain, RecordText.withSchema(rows, plain)] {
                #expect(try decoder.decode(key: key, value: value)?.after == values)
            }
        }
    }

    /// As a connector for PostgreSQL with all parts of its records would write it.
    @Test func aWholeRecordOfPostgreSQL() throws {
        let source =
            #"{"version":"3.3.1.Final","connector":"postgresql","name":"pg","ts_ms":1764316800123,"snapshot":"false","#
            + #""db":"shop","sequence":"[\"24023119\",\"24023128\"]","ts_us":1764316800123456,"#
            + #""ts_ns":1764316800123456000,"schema":"public","table":"product","txId":771,"lsn":24023128,"xmin":null}"#
        let value =
            #"{"before":null,"after":\#(row),"source":\#(source),"transaction":null,"op":"u","#
            + #""ts_ms":1764316800500,"ts_us":1764316800500100,"ts_ns":1764316800500100000}"#
        let event = try #require(try decoder.decode(key: key, value: value))
        #expect(event.operation == .update && event.after == values && event.before == nil)
        #expect(event.milliseconds == 1_764_316_800_123)
        #expect(event.position == SourcePosition(log: "postgresql", numbers: [24_023_119, 24_023_128]))
    }

    /// As a connector for MySQL with all parts of its records would write it.
    @Test func aWholeRecordOfMySQL() throws {
        let source =
            #"{"version":"3.3.1.Final","connector":"mysql","name":"my","ts_ms":1764316800000,"snapshot":"false","#
            + #""db":"shop","sequence":null,"ts_us":1764316800000000,"ts_ns":1764316800000000000,"table":"product","#
            + #""server_id":223344,"gtid":null,"file":"binlog.000003","pos":805,"row":1,"thread":7,"query":null}"#
        let value =
            #"{"before":{"id":7,"name":"ink","price":1.5},"after":\#(row),"source":\#(source),"transaction":null,"#
            + #""op":"u","ts_ms":1764316800500,"ts_us":1764316800500100,"ts_ns":1764316800500100000}"#
        let event = try #require(try decoder.decode(key: key, value: value))
        #expect(event.before?["name"] == .text("ink") && event.after == values)
        #expect(event.position == SourcePosition(log: "binlog:binlog.", numbers: [3, 805, 1]))
    }

    // MARK: Times

    @Test(arguments: [
        (#"{"ts_ms":0}"#, Int64(1_764_316_800_120)), ("null", 1_764_316_800_120), ("{}", 1_764_316_800_120),
        (#"{"ts_ms":-5}"#, 1_764_316_800_120), (#"{"ts_ms":"5"}"#, 1_764_316_800_120),
        (#"{"ts_ms":9223372036854775807}"#, 1_764_316_800_120), (#"{"ts_ms":1}"#, 1),
    ])
    func theTimeIsThatOfTheSourceIfItIsOne(source: String, milliseconds: Int64) throws {
        let value = RecordText.envelope("c", after: row, source: source)
        #expect(try decoder.decode(key: key, value: value)?.milliseconds == milliseconds)
    }

    @Test func aRecordMayHaveNoTime() throws {
        let value = #"{"before":null,"after":\#(row),"op":"c"}"#
        #expect(try decoder.decode(key: key, value: value)?.milliseconds == .some(nil))
    }

    // MARK: Records without a row

    @Test(arguments: [
        // A heartbeat.
        (#"{"serverName":"pg"}"#, #"{"ts_ms":1764316800000}"#),
        // A message of pg_logical_emit_message.
        (
            #"{"prefix":"p"}"#,
            #"{"op":"m","ts_ms":1,"source":{"connector":"postgresql"},"message":{"prefix":"p","content":"eA=="}}"#
        ),
        (#"{"id":"771"}"#, #"{"status":"BEGIN","id":"771","event_count":null,"data_collections":null,"ts_ms":1}"#),
        (
            #"{"id":"771"}"#,
            #"{"status":"END","id":"771","event_count":1,"data_collections":[{"data_collection":"t","event_count":1}]}"#
        ),
        // A change of the schema.
        (
            #"{"databaseName":"shop"}"#,
            #"{"source":{"connector":"mysql"},"ts_ms":1,"databaseName":"shop","ddl":"ALTER","tableChanges":[]}"#
        ),
        (
            "null",
            #"{"schema":{"type":"struct","fields":[],"name":"io.debezium.connector.common.Heartbeat"},"#
                + #""payload":{"ts_ms":1,"more":2}}"#
        ),
    ])
    func recordsWithoutARowAreNone(key: String, value: String) throws {
        #expect(try decoder.decode(key: key, value: value) == nil)
    }

    // MARK: What can't be understood

    /// Rows without an envelope, whatever their columns are called.
    @Test(arguments: [
        #"{"id":7,"name":"pen","price":1.5}"#, #"{"id":7,"__op":"c","__deleted":"false"}"#, #"{"id":7,"op":"c"}"#,
        #"{"id":7,"op":"d"}"#, #"{"id":7,"op":"m"}"#, #"{"id":7,"op":"t"}"#, #"{"id":7,"status":"END"}"#,
        #"{"id":7,"ts_ms":5}"#, #"{"id":7,"op":"x","before":null,"after":null}"#, "{}", "[]", "7", #""text""#, "true",
        #"{"op":"c","before":null,"after":[]}"#, #"{"op":5,"before":null,"after":{}}"#,
        #"{"specversion":"1.0","id":"1","data":{"op":"c"}}"#, #"{"op":"c","before":{"id":7},"after":null}"#,
    ])
    func whatIsNoEnvelopeIsRefused(value: String) {
        #expect(failure(decoder, key: key, value: value) == .notAnEvent)
    }

    @Test func aTruncatedTableIsRefused() {
        #expect(failure(decoder, key: nil, value: RecordText.envelope("t")) == .truncated)
    }

    @Test(arguments: [
        nil, "null", "{}", "7", "[7]", #"{"schema":null,"payload":null}"#, #"{"id":null}"#, #"{"id":[7]}"#,
    ])
    func aRecordNeedsAKey(key: String?) {
        for value in [RecordText.envelope("c", after: row), nil] {
            #expect(failure(decoder, key: key, value: value) == .missingKey)
        }
    }

    @Test(arguments: ["", "Struct{id=7}", #"{"id":7"#, #"{"id":7}x"#, "\u{0}\u{0}\u{0}\u{0}\u{1}\u{2}"])
    func whatIsNoJSONIsRefused(text: String) {
        #expect(failure(decoder, key: key, value: text) == .notJSON)
        #expect(failure(decoder, key: text, value: RecordText.envelope("c", after: row)) == .notJSON)
        #expect(failure(decoder, key: text, value: nil) == .notJSON)
    }

    @Test func errorsNameNoValues() throws {
        let secret = "S3CRET"
        let records: [(String?, String?)] = [
            (key, #"{"id":7,"name":"\#(secret)"}"#), (secret, nil), (key, secret),
            (#"{"id":"\#(secret)"}"#, RecordText.envelope("c", after: #"{"id":"\#(secret).","name":"a"}"#)),
            (#"{"id":["\#(secret)"]}"#, nil), (key, RecordText.envelope("t", before: #"{"name":"\#(secret)"}"#)),
            (key, RecordText.envelope("c", after: #"{"id":7,"extra":"\#(secret)"}"#)),
            (key, RecordText.envelope("c", after: #"{"id":7,"price":"\#(secret)00"}"#)),
        ]
        for (key, value) in records {
            let error = #expect(throws: IngestError.self) { try decoder.decode(key: key, value: value) }
            let text = try #require(error).description
            #expect(!text.contains(secret) && !text.contains("pen") && text.hasSuffix("."), "\(text)")
        }
    }

    // MARK: Columns

    private func decoder(_ columns: [String: String]?, _ types: [String: String]) -> RecordDecoder {
        RecordDecoder(mapping: TableMapping(topic: "t", table: "product", columns: columns), types: types)
    }

    @Test func theMappingRenamesColumnsAndLeavesOthersOut() throws {
        let decoder = decoder(["id": "sku", "name": "title"], ["sku": "INTEGER", "title": "TEXT"])
        let event = try decoder.decode(key: key, value: RecordText.envelope("c", after: row))
        #expect(event?.key == ["sku": .integer(7)])
        #expect(event?.after == ["sku": .integer(7), "title": .text("pen")])
    }

    @Test func aKeyNeedsItsColumnInTheMapping() {
        let decoder = decoder(["name": "title"], ["sku": "INTEGER", "title": "TEXT"])
        #expect(failure(decoder, key: key, value: nil) == .columns)
    }

    @Test func columnsThatTheTableComputesAreLeftOut() throws {
        let decoder = RecordDecoder(
            mapping: TableMapping(
                topic: "t", table: "product", columns: ["id": "id", "name": "name", "price": "Total"]),
            types: ["id": "INTEGER", "name": "TEXT"], ignoring: ["total"])
        let event = try decoder.decode(key: key, value: RecordText.envelope("c", before: row, after: row))
        #expect(event?.after == ["id": .integer(7), "name": .text("pen")] && event?.before == event?.after)
        #expect(failure(decoder, key: #"{"id":7,"price":1}"#, value: nil) == .columns)
    }

    @Test func namesOfColumnsHaveNoCaseAsInSQLite() throws {
        let decoder = decoder(nil, ["ID": "INTEGER", "Name": "TEXT", "price": "REAL"])
        let event = try decoder.decode(key: key, value: RecordText.envelope("c", after: row))
        #expect(event?.after == ["ID": .integer(7), "Name": .text("pen"), "price": .real(1.5)])
        let two = #"{"id":7,"Id":7}"#
        #expect(failure(decoder, key: key, value: RecordText.envelope("c", after: two)) == .columns)
        #expect(failure(decoder, key: two, value: nil) == .columns)
    }

    /// With its schema, the value means the same once the column is there; without, it may not.
    @Test func aColumnThatTheTableLacksNeedsASchema() throws {
        let decoder = decoder(nil, ["id": "INTEGER"])
        let plain = RecordText.envelope("c", after: #"{"id":7,"day":20454}"#)
        #expect(failure(decoder, key: key, value: plain) == .columns)
        let schema = RecordText.envelopeSchema([
            "id": #""type":"int32""#, "day": #""type":"int32","name":"io.debezium.time.Date""#,
        ])
        let event = try decoder.decode(key: key, value: RecordText.withSchema(schema, plain))
        #expect(event?.after == ["id": .integer(7), "day": .text("2026-01-01")])
        let empty = try decoder.decode(key: key, value: RecordText.envelope("c", after: #"{"id":7,"day":null}"#))
        #expect(empty?.after == ["id": .integer(7), "day": .null])
    }

    @Test func theRowHasTheKeyEvenIfTheSourceLeavesItOut() throws {
        let event = try decoder.decode(key: key, value: RecordText.envelope("u", after: #"{"name":"pen"}"#))
        #expect(event?.after == ["id": .integer(7), "name": .text("pen")])
    }

    @Test func keyAndRowMustAgree() {
        let value = RecordText.envelope("c", after: #"{"id":8,"name":"pen"}"#)
        #expect(failure(decoder, key: key, value: value) == .columns)
    }

    // MARK: Values that the source did not send

    @Test(arguments: [
        #""__debezium_unavailable_value""#, #""X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==""#,
        #"["__debezium_unavailable_value"]"#, #"["X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="]"#,
        #"["b68a35a7-17ad-35b3-af2a-ae46edb4545a"]"#,
        #"{"__debezium_unavailable_value":"__debezium_unavailable_value"}"#,
        #""{\"__debezium_unavailable_value\":\"__debezium_unavailable_value\"}""#,
        "[95,95,100,101,98,101,122,105,117,109,95,117,110,97,118,97,105,108,97,98,108,101,95,118,97,108,117,101]",
        #"{"wkb":"AQEAACDmEAAAAAAA/IPXl8EAAAD8g9eXwQ==","srid":4326}"#,
        #"{"x":-99999999.0,"y":-99999999.0,"wkb":null,"srid":null}"#,
    ])
    func aLargeValueThatDidNotChangeIsLeftOut(placeholder: String) throws {
        let value = RecordText.envelope("u", after: #"{"id":7,"name":\#(placeholder),"price":2}"#)
        let event = try decoder.decode(key: key, value: value)
        #expect(event?.after == ["id": .integer(7), "price": .real(2)])
    }

    @Test(arguments: [
        "[95,95]", #"["__debezium_unavailable_value","x"]"#, "[]", #"{"x":-99999999,"y":0}"#, #"{"wkb":"AQ=="}"#,
        "[0,95,100,101,98,101,122,105,117,109,95,117,110,97,118,97,105,108,97,98,108,101,95,118,97,108,117,101]",
    ])
    func otherValuesAreKept(json: String) throws {
        let value = RecordText.envelope("u", after: #"{"id":7,"name":\#(json)}"#)
        #expect(try decoder.decode(key: key, value: value)?.after?["name"] != nil)
    }

    /// A key is whole: a row may well have this name.
    @Test func aKeyIsNeverUnavailable() throws {
        let decoder = decoder(nil, ["id": "TEXT"])
        let event = try decoder.decode(key: #"{"id":"__debezium_unavailable_value"}"#, value: nil)
        #expect(event?.key == ["id": .text("__debezium_unavailable_value")])
    }
}
