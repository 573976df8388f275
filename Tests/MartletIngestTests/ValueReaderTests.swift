import Foundation
import MartletCore
import MartletIngest
import Testing

/// Which value a field of a record becomes, by its schema and by the declared type of the column.
@Suite struct ValueReaderTests {
    /// Returns the value that a column of a declared type gets. Nil for the type: the table has no such column.
    private func value(_ type: String?, _ json: String, _ schema: String? = nil, from connector: String = "postgresql")
        throws -> Value?
    {
        let types = ["k": "TEXT", "v": type].compactMapValues(\.self)
        let decoder = RecordDecoder(mapping: TableMapping(topic: "t", table: "t"), types: types)
        var value = RecordText.envelope(
            "c", after: #"{"k":"a","v":\#(json)}"#, source: #"{"connector":"\#(connector)"}"#)
        if let schema {
            let row = RecordText.envelopeSchema(["k": #""type":"string""#, "v": schema])
            value = RecordText.withSchema(row, value)
        }
        return try decoder.decode(key: #"{"k":"a"}"#, value: value)?.after?["v"]
    }

    private func code(_ type: String, _ json: String, _ schema: String? = nil) -> IngestError.Code? {
        do {
            _ = try value(type, json, schema)
            return nil
        } catch {
            return (error as? IngestError)?.code
        }
    }

    private static let date = #""type":"int32","name":"io.debezium.time.Date","version":1"#
    private static let milliseconds = #""type":"int64","name":"io.debezium.time.Timestamp","version":1"#
    private static let microseconds = #""type":"int64","name":"io.debezium.time.MicroTimestamp","version":1"#
    private static let nanoseconds = #""type":"int64","name":"io.debezium.time.NanoTimestamp","version":1"#
    private static let zoned = #""type":"string","name":"io.debezium.time.ZonedTimestamp","version":1"#
    private static let string = #""type":"string""#

    private static func decimal(_ scale: Int) -> String {
        #""type":"bytes","name":"org.apache.kafka.connect.data.Decimal","version":1,"parameters":{"scale":"\#(scale)"}"#
    }

    // MARK: Numbers

    @Test(arguments: [Int64.min, -1, 0, 9_007_199_254_740_993, .max])
    func integersAreExact(number: Int64) throws {
        for type in ["INTEGER", "BIGINT", "NUMERIC", "", "BLOB"] {
            #expect(try value(type, "\(number)", #""type":"int64""#) == .integer(number), "\(type)")
        }
        for type in ["INTEGER", "NUMERIC", ""] {
            #expect(try value(type, "\(number)") == .integer(number), "\(type)")
        }
        #expect(try value("TEXT", "\(number)", #""type":"int64""#) == .text("\(number)"))
        #expect(try value("TEXT", "\(number)") == .text("\(number)"))
        #expect(try value(nil, "\(number)", #""type":"int64""#) == .integer(number))
    }

    /// A REAL column would change the number: the store keeps such a change pending.
    @Test func anIntegerIsNotRoundedToADouble() throws {
        #expect(try value("REAL", "9007199254740992", #""type":"int64""#) == .real(9_007_199_254_740_992))
        #expect(
            try value("REAL", "9007199254740993", #""type":"int64""#) == .integer(9_007_199_254_740_993))
    }

    @Test(arguments: [0.1, -1e-7, .leastNonzeroMagnitude, 1.797_693_134_862_315_7e308, 1.5, 123_456_789.123_456_79])
    func doublesAreExact(number: Double) throws {
        for type in ["REAL", "DOUBLE PRECISION", "NUMERIC", "INTEGER", ""] {
            #expect(try value(type, "\(number)", #""type":"double""#) == .real(number), "\(type)")
            #expect(try value(type, "\(number)") == .real(number), "\(type)")
        }
        #expect(try value("TEXT", "\(number)", #""type":"double""#) == .text("\(number)"))
    }

    @Test func wholeDoublesAreWhatTheColumnStores() throws {
        #expect(try value("REAL", "3.0", #""type":"double""#) == .real(3))
        #expect(try value("REAL", "3") == .real(3))
        #expect(try value("NUMERIC", "3.0", #""type":"double""#) == .integer(3))
        #expect(try value("INTEGER", "3.0", #""type":"float""#) == .integer(3))
        #expect(try value("", "3.0", #""type":"double""#) == .real(3))
        #expect(try value("TEXT", "3.0", #""type":"double""#) == .text("3.0"))
    }

    @Test func numbersThatJSONLacksComeAsText() throws {
        #expect(try value("REAL", #""NaN""#, #""type":"double""#) == .null)
        #expect(try value("REAL", #""Infinity""#, #""type":"double""#) == .real(.infinity))
        #expect(try value("REAL", #""-Infinity""#, #""type":"float""#) == .real(-.infinity))
    }

    @Test func booleansAreZeroAndOne() throws {
        #expect(try value("BOOLEAN", "true", #""type":"boolean""#) == .integer(1))
        #expect(try value("INTEGER", "false") == .integer(0))
        #expect(try value("TEXT", "false") == .text("false"))
        // MySQL's BOOLEAN is TINYINT(1).
        #expect(try value("BOOLEAN", "2", #""type":"int16""#) == .integer(2))
    }

    // MARK: Decimals

    private static let unscaled: [(Int, String, String)] = [
        (2, "BNI=", "12.34"),
        (2, "AA==", "0.00"),
        (0, "AA==", "0"),
        (2, "/w==", "-0.01"),
        (2, "AQ==", "0.01"),
        (0, "/4A=", "-128"),
        (0, "AIA=", "128"),
        (3, "fw==", "0.127"),
        (0, "f/////////8=", "9223372036854775807"),
        (0, "/4AAAAAAAAAA", "-9223372036854775808"),
        (0, "AIAAAAAAAAAA", "9223372036854775808"),
        (0, "AP////////////8=", "1208925819614629174706175"),
        (10, "7ser7Qb0nbCtoAE=", "-2081774235012806.6453463039"),
        (
            30, "APMWJxx/w5CKi+9GTjlF73olNgn//////////w==",
            "99999999999999999999999999999999999.999999999999999999999999999999"
        ),
        (-2, "AQ==", "100"), (-2, "AA==", "0"), (0, "AAAAAQ==", "1"), (2, "////nA==", "-1.00"),
    ]

    @Test(arguments: unscaled)
    func decimalsAreExactInText(scale: Int, base64: String, text: String) throws {
        for type in ["TEXT", "VARCHAR(40)", ""] {
            #expect(try value(type, #""\#(base64)""#, Self.decimal(scale)) == .text(text), "\(type)")
        }
        let variable = #""type":"struct","name":"io.debezium.data.VariableScaleDecimal","version":1"#
        let json = #"{"scale":\#(scale),"value":"\#(base64)"}"#
        #expect(try value("TEXT", json, variable) == .text(text))
        #expect(try value("TEXT", json) == .text(text))
    }

    @Test(arguments: unscaled)
    func decimalsAreNumbersInOtherColumns(scale: Int, base64: String, text: String) throws {
        let real = try #require(Double(text))
        for type in ["DECIMAL(10, 2)", "NUMERIC", "INTEGER"] {
            let stored = try value(type, #""\#(base64)""#, Self.decimal(scale))
            if let whole = Int64(text) ?? Int64(exactly: real) {
                #expect(stored == .integer(whole), "\(type)")
            } else {
                #expect(stored == .real(real), "\(type)")
            }
        }
        #expect(try value("REAL", #""\#(base64)""#, Self.decimal(scale)) == .real(real))
    }

    /// Every size of bytes, against a sum that is easy to check.
    @Test func decimalsOfAnySizeAreRead() throws {
        for count in 1...80 {
            let bytes = [UInt8](repeating: 0x12, count: count)
            // 0x1212...12 is 0x12 * (256^count - 1) / 255.
            var digits: [UInt8] = [0]
            for byte in bytes {
                var carry = Int(byte)
                for index in digits.indices.reversed() {
                    carry += Int(digits[index]) * 256
                    digits[index] = UInt8(carry % 10)
                    carry /= 10
                }
                while carry > 0 {
                    digits.insert(UInt8(carry % 10), at: 0)
                    carry /= 10
                }
            }
            let text = digits.map(String.init).joined()
            let positive = Data(bytes).base64EncodedString()
            #expect(try value("TEXT", #""\#(positive)""#, Self.decimal(0)) == .text(text))
            // Its negative in two's complement: all bits flipped, and one added.
            let flipped = Data(bytes.dropLast().map { ~$0 } + [~0x12 + 1]).base64EncodedString()
            #expect(try value("TEXT", #""\#(flipped)""#, Self.decimal(0)) == .text("-\(text)"))
        }
    }

    /// `decimal.handling.mode=string`, and `decimal.format=NUMERIC` of the converter.
    @Test func decimalsMayComeAsTextOrNumbers() throws {
        #expect(try value("DECIMAL(10,2)", #""12.50""#, Self.string) == .real(12.5))
        #expect(try value("DECIMAL(10,2)", #""12.00""#, Self.string) == .integer(12))
        #expect(try value("DECIMAL(10,2)", #""12.50""#) == .real(12.5))
        #expect(try value("TEXT", #""12.50""#, Self.string) == .text("12.50"))
        #expect(try value("DECIMAL(10,2)", "12.50", Self.decimal(2)) == .real(12.5))
        #expect(try value("TEXT", "0.1", Self.decimal(1)) == .text("0.1"))
        let long = "12345678901234567890.123456789012345678"
        #expect(try value("TEXT", long, Self.decimal(18)) == .text(long))
        #expect(code("TEXT", long + "901234567890", Self.decimal(30)) == .invalidValue)
    }

    /// Foundation takes them for integers.
    @Test(arguments: ["100.000000000000000001", "4503599627370497.3", "9007199254740993.7", "-9007199254740993.7"])
    func p238DecimalsThatAreNearlyWholeKeepTheirFractions(text: String) throws {
        #expect(try value("TEXT", text, Self.decimal(18)) == .text(text))
        #expect(try value("TEXT", text) == .text(text))
        #expect(code("INTEGER", text, #""type":"int64""#) == .invalidValue)
    }

    /// Foundation ends the process if it decodes them as integers.
    @Test(arguments: [
        "1" + String(repeating: "0", count: 170) + "e-154",
        "0." + String(repeating: "0", count: 130) + "9007199254740993e147",
    ])
    func p238NumbersWithTooManyDigitsAreReadAsReals(text: String) throws {
        let real = try #require(Double(text))
        #expect(try value("REAL", text, #""type":"double""#) == .real(real))
        #expect(code("INTEGER", text, #""type":"int64""#) == .invalidValue)
        #expect(try value("TEXT", "[\(text)]") != nil)
    }

    /// A column that turned the text into a number would store another text than the source has.
    @Test(arguments: ["007", "1e3", "+1", " 1", "1.", ".5", "-", "", "0x10", "1,5", "١", "NaN"])
    func textThatIsNoDecimalStaysText(text: String) throws {
        #expect(try value("INTEGER", #""\#(text)""#, Self.string) == .text(text))
    }

    @Test func aDecimalThatNoDoubleHoldsNeedsText() throws {
        let huge = Data([1] + [UInt8](repeating: 0, count: 200)).base64EncodedString()
        #expect(code("REAL", #""\#(huge)""#, Self.decimal(0)) == .invalidValue)
        #expect(try value("TEXT", #""\#(huge)""#, Self.decimal(0)) != nil)
    }

    @Test(arguments: [#""?""#, #""""#, "{}", "true"])
    func whatIsNoDecimalIsRefused(json: String) {
        #expect(code("NUMERIC", json, Self.decimal(2)) == .invalidValue)
    }

    @Test func aScaleIsBounded() {
        for scale in ["99999999999", "-2147483648", "x"] {
            let schema = Self.decimal(0).replacing(#""scale":"0""#, with: #""scale":"\#(scale)""#)
            #expect(code("TEXT", #""AQ==""#, schema) == .invalidValue)
        }
        let many = Data(count: 5000).base64EncodedString()
        #expect(code("TEXT", #""\#(many)""#, Self.decimal(0)) == .invalidValue)
    }

    // MARK: Dates and times

    @Test(arguments: [
        (0, "1970-01-01"), (-1, "1969-12-31"), (19_782, "2024-02-29"), (20_454, "2026-01-01"), (-719_528, "0000-01-01"),
        (2_932_896, "9999-12-31"), (11_016, "2000-02-29"), (-25_509, "1900-02-28"), (-25_508, "1900-03-01"),
        (2_932_897, "+10000-01-01"), (-719_529, "-0001-12-31"), (Int(Int32.max), "+5881580-07-11"),
    ])
    func datesAreText(days: Int, text: String) throws {
        for type in ["DATE", "TEXT", ""] {
            #expect(try value(type, "\(days)", Self.date) == .text(text))
        }
        #expect(try value("DATE", "\(days)") == .text(text))
        #expect(
            try value("DATE", "\(days)", #""type":"int32","name":"org.apache.kafka.connect.data.Date""#)
                == .text(text))
    }

    @Test func everyDayHasItsDate() throws {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = try #require(TimeZone(secondsFromGMT: 0))
        for days in stride(from: -100_000, through: 100_000, by: 97) {
            let date = Date(timeIntervalSince1970: Double(days) * 86_400)
            let parts = calendar.dateComponents([.year, .month, .day], from: date)
            let text = String(
                format: "%04d-%02d-%02d", try #require(parts.year), try #require(parts.month), try #require(parts.day))
            #expect(try value("DATE", "\(days)", Self.date) == .text(text))
        }
    }

    @Test func timesHaveAsManyDigitsAsTheyNeed() throws {
        let cases: [(String, Int64, String)] = [
            (Self.milliseconds, 0, "1970-01-01 00:00:00"), (Self.milliseconds, -1, "1969-12-31 23:59:59.999"),
            (Self.milliseconds, 1_764_316_800_120, "2025-11-28 08:00:00.120"),
            (Self.microseconds, 1_764_316_800_120_000, "2025-11-28 08:00:00.120"),
            (Self.microseconds, 1_764_316_800_000_001, "2025-11-28 08:00:00.000001"),
            (Self.microseconds, -1, "1969-12-31 23:59:59.999999"),
            (Self.nanoseconds, 1_764_316_800_000_000_001, "2025-11-28 08:00:00.000000001"),
            (Self.nanoseconds, 1_764_316_800_000_001_000, "2025-11-28 08:00:00.000001"),
            (Self.nanoseconds, .min, "1677-09-21 00:12:43.145224192"),
            (Self.milliseconds, .min, "-292275055-05-16 16:47:04.192"),
            (Self.milliseconds, .max, "+292278994-08-17 07:12:55.807"),
            (Self.microseconds, 9_223_372_036_825_200_000, "infinity"),
            (Self.milliseconds, -9_223_372_036_832_400_000, "-infinity"),
        ]
        for (schema, count, text) in cases {
            for type in ["DATETIME", "TIMESTAMP", "TEXT", ""] {
                #expect(try value(type, "\(count)", schema) == .text(text))
            }
        }
        let connect = #""type":"int64","name":"org.apache.kafka.connect.data.Timestamp""#
        #expect(try value("DATETIME", "1000", connect) == .text("1970-01-01 00:00:01"))
    }

    @Test func timesOfDayMayBeNegativeOrLong() throws {
        func schema(_ name: String) -> String { #""type":"int64","name":"\#(name)""# }
        let cases: [(String, Int64, String)] = [
            ("io.debezium.time.Time", 0, "00:00:00"), ("io.debezium.time.Time", 86_399_999, "23:59:59.999"),
            ("org.apache.kafka.connect.data.Time", 1, "00:00:00.001"),
            ("io.debezium.time.MicroTime", 86_399_999_999, "23:59:59.999999"),
            ("io.debezium.time.MicroTime", -3_020_399_000_000, "-838:59:59"),
            ("io.debezium.time.NanoTime", 1, "00:00:00.000000001"),
            ("io.debezium.time.MicroTime", .min, "-2562047788:00:54.775808"),
        ]
        for (name, count, text) in cases {
            #expect(try value("TIME", "\(count)", schema(name)) == .text(text))
        }
    }

    @Test(arguments: [
        ("2026-01-31T23:59:58Z", "2026-01-31 23:59:58"), ("2026-01-31T23:59:58.5Z", "2026-01-31 23:59:58.500"),
        ("2026-01-31T23:59:58.123456Z", "2026-01-31 23:59:58.123456"),
        ("2026-01-31T23:59:58+02:00", "2026-01-31 21:59:58"), ("2025-12-31T23:59:58-05:30", "2026-01-01 05:29:58"),
        ("2024-02-29T00:00:00", "2024-02-29 00:00:00"), ("2026-01-31 23:59:58", "2026-01-31 23:59:58"),
        // What has another form stays as it is.
        ("2023-02-29T00:00:00Z", "2023-02-29T00:00:00Z"), ("2026-01-31T24:00:00Z", "2026-01-31T24:00:00Z"),
        ("2026-01-31T23:59:58.Z", "2026-01-31T23:59:58.Z"), ("2026-01-31T23:59:58+2:00", "2026-01-31T23:59:58+2:00"),
        ("2026-01-31T23:59:58.1234567891Z", "2026-01-31T23:59:58.1234567891Z"),
        ("+292278994-08-17T07:00:00Z", "+292278994-08-17T07:00:00Z"), ("2026-01-31", "2026-01-31"), ("", ""),
        ("now", "now"),
    ])
    func timesWithAZoneAreThoseOfUTC(text: String, stored: String) throws {
        for type in ["DATETIME", "TIMESTAMP"] {
            #expect(try value(type, #""\#(text)""#, Self.zoned) == .text(stored))
            #expect(try value(type, #""\#(text)""#) == .text(stored))
        }
        #expect(try value("TEXT", #""\#(text)""#, Self.zoned) == .text(text))
    }

    /// `time.precision.mode=isostring`.
    @Test func datesAndTimesAsTextLoseTheirZone() throws {
        #expect(try value("DATE", #""2026-01-31Z""#) == .text("2026-01-31"))
        #expect(try value("DATE", #""2026-01-32Z""#) == .text("2026-01-32Z"))
        #expect(try value("TIME", #""23:59:58.123456Z""#) == .text("23:59:58.123456"))
        #expect(try value("TIME", #""23:59:58Z""#) == .text("23:59:58"))
        #expect(try value("TIME", #""23:59:58+02:00""#) == .text("23:59:58+02:00"))
        #expect(try value("TEXT", #""23:59:58Z""#) == .text("23:59:58Z"))
    }

    /// Programs that count seconds declare numbers.
    @Test func columnsForNumbersGetTimesAsTheyAre() throws {
        #expect(try value("INTEGER", "1764316800120000", Self.microseconds) == .integer(1_764_316_800_120_000))
        #expect(try value("INTEGER", "20454", Self.date) == .integer(20_454))
        #expect(try value("INTEGER", "20454") == .integer(20_454))
    }

    @Test func whatATimeWithoutASchemaMeansIsNotGuessed() {
        for type in ["DATETIME", "TIMESTAMP", "TIME"] {
            #expect(code(type, "1764316800120") == .ambiguousValue)
        }
        #expect(code("DATE", "1764316800120") == .invalidValue)
        #expect(code("DATE", "4294967296", Self.date) == .invalidValue)
        #expect(code("DATE", "1.5", Self.date) == .invalidValue)
    }

    // MARK: Text, bytes and the rest

    @Test(arguments: ["", "é\u{0}\u{1f}", "😀", "12", "AQ==", "2026-01-31T23:59:58Z"])
    func textIsExact(text: String) throws {
        let json = try #require(String(data: JSONEncoder().encode(text), encoding: .utf8))
        for type in ["TEXT", "VARCHAR(10)", "CLOB", "UUID", ""] {
            #expect(try value(type, json, Self.string) == .text(text))
            #expect(try value(type, json) == .text(text))
        }
        #expect(try value("BLOB", json, Self.string) == .text(text))
    }

    @Test func bytesAreBlobs() throws {
        for type in ["BLOB", "TEXT", "", "INTEGER"] {
            #expect(try value(type, #""AP8=""#, #""type":"bytes""#) == .blob([0, 255]))
        }
        #expect(try value("BLOB", #""AP8=""#) == .blob([0, 255]))
        #expect(try value("BLOB", #""""#) == .blob([]))
        #expect(code("BLOB", #""AP8""#) == .invalidValue)
        #expect(code("BLOB", #""AP8""#, #""type":"bytes""#) == .invalidValue)
    }

    @Test func bitsAreBytesOrANumber() throws {
        let schema = #""type":"bytes","name":"io.debezium.data.Bits","parameters":{"length":"12"}"#
        #expect(try value("BLOB", #""AQI=""#, schema) == .blob([1, 2]))
        #expect(try value("INTEGER", #""AQI=""#, schema) == .integer(513))
        #expect(try value("INTEGER", #""/////////38=""#, schema) == .integer(.max))
        // More than an integer has.
        #expect(try value("INTEGER", #""//////////8=""#, schema) == .blob([UInt8](repeating: 255, count: 8)))
        #expect(try value("INTEGER", #""AQAAAAAAAAAA""#, schema) == .blob([1] + [UInt8](repeating: 0, count: 8)))
    }

    @Test func structsAndArraysAreJSON() throws {
        #expect(try value("TEXT", #"[1, 2.5, "a\"b", null, true]"#) == .text(#"[1,2.5,"a\"b",null,true]"#))
        #expect(try value("TEXT", "[]", #""type":"array""#) == .text("[]"))
        let point = #"{"y": 2, "x": 1.0, "wkb": "AQ==", "srid": null}"#
        for type in ["TEXT", "JSON", "BLOB", ""] {
            #expect(try value(type, point, #""type":"struct""#) == .text(#"{"srid":null,"wkb":"AQ==","x":1,"y":2}"#))
            #expect(try value(type, point) == .text(#"{"srid":null,"wkb":"AQ==","x":1,"y":2}"#))
        }
        #expect(
            try value("TEXT", "[9007199254740993,12345678901234567890,0.1,1e-300]")
                == .text("[9007199254740993,12345678901234567890,0.1,1e-300]"))
    }

    @Test func jsonIsText() throws {
        let schema = #""type":"string","name":"io.debezium.data.Json""#
        #expect(try value("JSON", #""{\"a\": 1}""#, schema) == .text(#"{"a": 1}"#))
        #expect(try value("TEXT", #""12""#, schema) == .text("12"))
        // The type JSON has the numeric affinity.
        #expect(try value("JSON", #""12""#, schema) == .integer(12))
        #expect(try value("JSON", #""1.50""#, schema) == .real(1.5))
        #expect(try value("JSONB", #""\"12\"""#) == .text(#""12""#))
        #expect(try value("JSON", #"{"scale":1,"value":"AQ=="}"#) == .text(#"{"scale":1,"value":"AQ=="}"#))
    }

    /// The bytes of a decimal can look like a number in text.
    @Test func aStringWithoutASchemaIsNoNumberIfItCanBeBytes() throws {
        for type in ["NUMERIC", "REAL", "INTEGER", "DECIMAL(10,2)"] {
            #expect(code(type, #""1234""#) == .ambiguousValue)
            #expect(code(type, #""AMg=""#) == .ambiguousValue)
            #expect(try value(type, #""1234""#, Self.string) == (type == "REAL" ? .real(1234) : .integer(1234)))
        }
        #expect(try value("NUMERIC", #""-123""#) == .integer(-123))
        #expect(try value("NUMERIC", #""12""#) == .integer(12))
    }

    @Test func nullIsNull() throws {
        for type in ["TEXT", "INTEGER", "DATE", "BLOB", "", "NUMERIC", nil] {
            #expect(try value(type, "null", Self.microseconds) == .null)
            #expect(try value(type, "null") == .null)
        }
    }

    @Test(arguments: [
        (#""type":"int32""#, #""1""#), (#""type":"int32""#, "1.5"), (#""type":"int64""#, "9223372036854775808"),
        (#""type":"boolean""#, "1"), (#""type":"string""#, "1"), (#""type":"bytes""#, "[1]"), (#""type":"x""#, "1"),
        (#""type":"double""#, "true"), (#""type":"double""#, #""x""#),
        (#""type":"bytes","name":"io.debezium.data.Bits""#, "1"),
    ])
    func aValueFitsItsSchema(schema: String, json: String) {
        #expect(code("TEXT", json, schema) == .invalidValue)
    }

    // MARK: Martlet's own export

    /// Its values have one meaning without a schema, too.
    @Test func recordsOfTheExportNeedNoSchema() throws {
        func read(_ type: String, _ json: String) throws -> Value? { try value(type, json, from: "martlet") }
        #expect(try read("DATETIME", "1704103200250") == .text("2024-01-01 10:00:00.250"))
        #expect(try read("DATE", "19782") == .text("2024-02-29"))
        #expect(try read("INTEGER", #""many""#) == .text("many"))
        #expect(try read("NUMERIC", #""1234""#) == .integer(1234))
        #expect(try read("BOOLEAN", "true") == .integer(1))
        #expect(try read("DECIMAL(10, 2)", "5.0") == .integer(5))
        #expect(try read("TIME", #""10:00:00""#) == .text("10:00:00"))
    }
}
