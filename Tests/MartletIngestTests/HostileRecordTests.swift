import MartletCore
import MartletIngest
import MartletTestSupport
import Testing

/// Records that nobody's connector writes: each is read, or refused with an error of ingest, and the same every time.
@Suite struct HostileRecordTests {
    private static let types = [
        "id": "INTEGER", "a": "TEXT", "b": "REAL", "c": "BLOB", "d": "DATE", "e": "DATETIME", "f": "DECIMAL(10,2)",
        "g": "BOOLEAN", "h": "", "i": "JSON", "j": "TIME",
    ]
    private let decoder = RecordDecoder(mapping: TableMapping(topic: "t", table: "t"), types: types)

    private static let key = #"{"id":7}"#

    private static let record: String = {
        let fields: KeyValuePairs<String, String> = [
            "id": #""type":"int64""#, "a": #""type":"string""#, "b": #""type":"double""#, "c": #""type":"bytes""#,
            "d": #""type":"int32","name":"io.debezium.time.Date""#,
            "e": #""type":"int64","name":"io.debezium.time.MicroTimestamp""#,
            "f": #""type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"}"#,
            "g": #""type":"boolean""#, "h": #""type":"array""#, "i": #""type":"string""#,
            "j": #""type":"int64","name":"io.debezium.time.MicroTime""#,
        ]
        let row =
            #"{"id":7,"a":"é\u0000","b":-1.5e-7,"c":"AP8=","d":20454,"e":1764316800120001,"f":"BNI=","g":true,"#
            + #""h":[1,{"x":null}],"i":"{}","j":86399999999}"#
        let source = #"{"connector":"postgresql","ts_ms":1764316800000,"sequence":"[\"1\",\"2\"]","lsn":2}"#
        return RecordText.withSchema(
            RecordText.envelopeSchema(fields),
            RecordText.envelope("u", before: row, after: row, source: source))
    }()

    /// Reads a record twice.
    private func read(_ key: [UInt8]?, _ value: [UInt8]?) -> Result<SourceEvent?, IngestError> {
        let results = (0..<2).map { _ in
            Result { () throws(IngestError) in try decoder.decode(key: key, value: value) }
        }
        #expect(results[0] == results[1])
        return results[0]
    }

    @Test func theRecordItselfIsRead() throws {
        let event = try #require(try read(Array(Self.key.utf8), Array(Self.record.utf8)).get())
        #expect(event.after?.count == Self.types.count && event.before == event.after)
    }

    @Test func everyPrefixIsRefused() {
        let bytes = Array(Self.record.utf8)
        for count in bytes.indices {
            guard case .failure(let error) = read(Array(Self.key.utf8), Array(bytes.prefix(count))) else {
                Issue.record("\(count) bytes were read")
                continue
            }
            #expect(error.code == .notJSON)
        }
    }

    /// Bytes replaced, removed, repeated and swapped.
    @Test(arguments: 0..<8 as Range<UInt64>)
    func damagedRecordsAreReadOrRefused(seed: UInt64) {
        var random = SplitMix(seed: seed)
        var refused = 0
        for _ in 0..<300 {
            var key = Array(Self.key.utf8)
            var value = Array(Self.record.utf8)
            for _ in 0...random.below(3) {
                if random.below(8) == 0 { damage(&key, &random) } else { damage(&value, &random) }
            }
            if case .failure = read(key, value) { refused += 1 }
        }
        #expect(refused > 100)
    }

    private func damage(_ bytes: inout [UInt8], _ random: inout SplitMix) {
        guard !bytes.isEmpty else { return }
        let index = random.below(bytes.count)
        switch random.below(6) {
        case 0: bytes[index] = UInt8(random.below(256))
        case 1: bytes.remove(at: index)
        case 2: bytes.removeSubrange(index..<min(bytes.count, index + 1 + random.below(20)))
        case 3: bytes.insert(contentsOf: bytes[index..<min(bytes.count, index + 1 + random.below(40))], at: index)
        case 4: bytes.swapAt(index, random.below(bytes.count))
        default: bytes[index] = Array(#"{}[]",:0-e\."#.utf8)[random.below(12)]
        }
    }

    /// Each value of the row in turn is something else.
    @Test func valuesOfAnyTypeAreReadOrRefused() {
        let values = [
            "null", "true", "0", "-0.0", "1e999", "-1e999", "1e-999", "9223372036854775808", "-9223372036854775809",
            "123456789012345678901234567890123456789012345678901234567890", "0.1e1", "01", "1.", "NaN", "Infinity",
            #""""#, #""\u0000""#, #""\ud800""#, #""\ud83d\ude00""#, "[]", "{}", "[[[[]]]]", #"{"scale":0,"value":""}"#,
            #"{"scale":2147483647,"value":"AQ=="}"#, #"{"scale":"0","value":1}"#, #"{"value":"AQ==","scale":-9e18}"#,
        ]
        for schema in [true, false] {
            for column in Self.types.keys.sorted() {
                for value in values {
                    let row = #"{"id":7,"\#(column)":\#(value)}"#
                    var text = RecordText.envelope("c", after: row)
                    if schema {
                        for type in ["int64", "string", "bytes", "double", "struct", "array", "boolean", "", "?"] {
                            let fields = RecordText.envelopeSchema(["id": #""type":"int64""#])
                                .replacing(
                                    #","optional":true,"field":"id"}"#,
                                    with: #","field":"id"},{"type":"\#(type)","field":"\#(column)"}"#)
                            _ = read(Array(Self.key.utf8), Array(RecordText.withSchema(fields, text).utf8))
                        }
                    } else {
                        _ = read(Array(Self.key.utf8), Array(text.utf8))
                        text = #"{"\#(column)":\#(value)}"#
                        _ = read(Array(text.utf8), nil)
                    }
                }
            }
        }
    }

    @Test(arguments: [100, 510, 520, 100_000])
    func deepNestingIsRefused(depth: Int) {
        for (open, close) in [("[", "]"), (#"{"a":"#, "}")] {
            let nested = String(repeating: open, count: depth) + "1" + String(repeating: close, count: depth)
            let value = RecordText.envelope("c", after: #"{"id":7,"a":\#(nested)}"#)
            for text in [nested, value] {
                guard case .failure(let error) = read(Array(Self.key.utf8), Array(text.utf8)) else {
                    Issue.record("\(depth) levels were read")
                    continue
                }
                #expect(error.code == .notJSON)
                #expect(throws: IngestError.self) { try decoder.decode(key: Array(text.utf8), value: nil) }
            }
            // A schema nests, too.
            let schema = String(repeating: #"{"type":"struct","fields":["#, count: depth)
            let ends = String(repeating: "]}", count: depth)
            guard case .failure = read(Array(Self.key.utf8), Array(#"{"schema":\#(schema)\#(ends),"payload":{}}"#.utf8))
            else {
                Issue.record("a schema of \(depth) levels was read")
                continue
            }
        }
    }

    @Test func aMemberThatIsThereTwiceCountsOnce() throws {
        let value = RecordText.envelope("c", after: #"{"id":7,"a":"x","a":"y"}"#)
        let event = try decoder.decode(key: #"{"id":7,"id":8}"#, value: value)
        #expect(event?.key == ["id": .integer(7)])
        #expect(event?.after?["a"] == .text("x"))
    }

    @Test func bytesThatAreNotUTF8AreRefused() {
        var bytes = Array(RecordText.envelope("c", after: #"{"id":7,"a":"?"}"#.replacing("?", with: "@")).utf8)
        for index in bytes.indices where bytes[index] == UInt8(ascii: "@") { bytes[index] = 0xff }
        guard case .failure(let error) = read(Array(Self.key.utf8), bytes) else {
            Issue.record("the bytes were read")
            return
        }
        #expect(error.code == .notJSON)
    }
}
