import Foundation
import MartletCore

/// Turns a field of a record into the value of a column.
struct ValueReader {
    /// The column's name at the source, for errors.
    let field: String
    /// Nil if the table does not have the column.
    let type: ColumnType?
    /// Whether the record is one of Martlet's export. Its values without a schema have one meaning.
    let isExport: Bool

    /// The type that the value is read for. A column that the table lacks, and that will be added one day, may have
    /// any.
    private var target: ColumnType { type ?? ColumnType(declared: "") }

    /// - Throws: ``IngestError``, without the value.
    func value(_ json: JSON, _ schema: ConnectSchema?) throws(IngestError) -> Value {
        if json.isNull { return .null }
        guard let schema else { return try valueWithoutSchema(json) }
        switch schema.name {
        case "io.debezium.time.Date", "org.apache.kafka.connect.data.Date":
            return try time(json) { Int32(exactly: $0).map(TimeText.date) }
        case "io.debezium.time.Timestamp", "org.apache.kafka.connect.data.Timestamp":
            return try time(json) { TimeText.timestamp($0, .milliseconds) }
        case "io.debezium.time.MicroTimestamp": return try time(json) { TimeText.timestamp($0, .microseconds) }
        case "io.debezium.time.NanoTimestamp": return try time(json) { TimeText.timestamp($0, .nanoseconds) }
        case "io.debezium.time.Time", "org.apache.kafka.connect.data.Time":
            return try time(json) { TimeText.time($0, .milliseconds) }
        case "io.debezium.time.MicroTime": return try time(json) { TimeText.time($0, .microseconds) }
        case "io.debezium.time.NanoTime": return try time(json) { TimeText.time($0, .nanoseconds) }
        case "org.apache.kafka.connect.data.Decimal": return try decimal(json, schema)
        case "io.debezium.data.VariableScaleDecimal": return try variableDecimal(json)
        case "io.debezium.data.Bits": return try bits(json)
        case "io.debezium.data.Json": return try jsonText(json)
        default: break
        }
        switch (schema.type, json) {
        case ("boolean", .boolean(let flag)): return boolean(flag)
        case ("int8", .number(let number)), ("int16", .number(let number)), ("int32", .number(let number)),
            ("int64", .number(let number)):
            guard let whole = number.whole else { throw invalid("an integer") }
            return target.value(whole)
        case ("float", .number(let number)), ("double", .number(let number)): return target.value(number.real)
        // Numbers that JSON does not have come as text.
        case ("float", .string(let text)), ("double", .string(let text)):
            switch text {
            case "NaN": return .null
            case "Infinity": return target.value(Double.infinity)
            case "-Infinity": return target.value(-Double.infinity)
            default: throw invalid("a number")
            }
        case ("string", .string(let text)): return try string(text)
        case ("bytes", .string(let text)): return .blob(try bytes(text))
        case ("struct", _), ("array", _), ("map", _): return .text(try json.serialized())
        default: throw invalid(schema.type)
        }
    }

    // MARK: With and without a schema

    private func boolean(_ flag: Bool) -> Value {
        target.kind == .text ? .text(flag ? "true" : "false") : .integer(flag ? 1 : 0)
    }

    /// A count of days or of parts of a second, as text; or as it is, if the column is for numbers.
    private func time(_ json: JSON, _ text: (Int64) -> String?) throws(IngestError) -> Value {
        // The connector can be told to write text.
        if case .string(let text) = json { return try string(text) }
        guard case .number(let number) = json, let count = number.whole, let text = text(count) else {
            throw invalid("a date or a time")
        }
        return target.isNumeric ? target.value(count) : .text(text)
    }

    private func string(_ text: String) throws(IngestError) -> Value {
        switch target.kind {
        // What the export writes as text is text in the store.
        case .timestamp where isExport, .date where isExport, .time where isExport: .text(text)
        case .timestamp: .text(ISOTime.timestamp(text) ?? text)
        case .date, .time: .text(ISOTime.withoutZone(text))
        case .integer, .real, .numeric:
            // Decimals come as text with decimal.handling.mode=string.
            if let number = DecimalText(text) { try decimal(number) } else { .text(text) }
        case .json: target.value(json: text)
        case .boolean, .uuid, .bytes, .text, .any: .text(text)
        }
    }

    private func jsonText(_ json: JSON) throws(IngestError) -> Value {
        if let text = json.text { return target.value(json: text) }
        return target.value(json: try json.serialized())
    }

    private func bytes(_ text: String) throws(IngestError) -> [UInt8] {
        guard let data = Data(base64Encoded: text) else { throw invalid("bytes in Base64") }
        return Array(data)
    }

    /// A bit string, the lowest byte first.
    private func bits(_ json: JSON) throws(IngestError) -> Value {
        guard case .string(let text) = json else { throw invalid("bytes") }
        let bytes = try bytes(text)
        guard target.kind == .integer, bytes.count <= 8,
            let number = Int64(exactly: bytes.reversed().reduce(0 as UInt64) { $0 << 8 | UInt64($1) })
        else { return .blob(bytes) }
        return .integer(number)
    }

    // MARK: Decimals

    private func decimal(_ json: JSON, _ schema: ConnectSchema) throws(IngestError) -> Value {
        switch json {
        case .string(let text):
            guard let scale = Int64(schema.parameters?["scale"] ?? "0") else { throw invalid("a decimal") }
            return try decimal(unscaled: bytes(text), scale: scale)
        // decimal.format=NUMERIC in the converter.
        case .number(let number):
            guard let number = DecimalText(try number.text()) else { throw invalid("a decimal") }
            return try decimal(number)
        case .null, .boolean, .array, .object: throw invalid("a decimal")
        }
    }

    private func variableDecimal(_ json: JSON) throws(IngestError) -> Value {
        guard case .object(let members) = json, case .number(let number)? = members["scale"],
            let scale = number.whole, let text = members["value"]?.text
        else { throw invalid("a decimal") }
        return try decimal(unscaled: bytes(text), scale: scale)
    }

    private func decimal(unscaled: [UInt8], scale: Int64) throws(IngestError) -> Value {
        guard let number = DecimalText(unscaled: unscaled, scale: scale) else { throw invalid("a decimal") }
        return try decimal(number)
    }

    private func decimal(_ number: DecimalText) throws(IngestError) -> Value {
        // Text that is a number would stay pending in a column that turns it into another text.
        guard type != nil else { return number.exactValue ?? .text(number.text) }
        guard let value = target.value(number) else {
            throw IngestError(
                .invalidValue, "column \(field): the number is too large for the column",
                hint: "Declare the column as TEXT.")
        }
        return value
    }

    // MARK: Without a schema

    private func valueWithoutSchema(_ json: JSON) throws(IngestError) -> Value {
        switch json {
        case .null: return .null
        case .boolean(let flag): return boolean(flag)
        case .number(let number): return try numberWithoutSchema(number)
        case .string(let text): return try stringWithoutSchema(text)
        case .object where target.kind != .json && json.isVariableDecimal: return try variableDecimal(json)
        case .array, .object: return .text(try json.serialized())
        }
    }

    private func numberWithoutSchema(_ number: JSONNumber) throws(IngestError) -> Value {
        switch target.kind {
        case .date:
            guard let whole = number.whole, let days = Int32(exactly: whole) else { throw invalid("a date") }
            return .text(TimeText.date(days: days))
        case .timestamp:
            guard isExport, let whole = number.whole else {
                throw ambiguous("milliseconds or microseconds", "time.precision.mode to isostring")
            }
            return .text(TimeText.timestamp(whole, .milliseconds))
        case .time where !isExport:
            throw ambiguous("milliseconds or microseconds", "time.precision.mode to isostring")
        case .text: return .text(try number.text())
        case .real: return target.value(number.real)
        case .boolean, .time, .json, .uuid, .integer, .numeric, .bytes, .any:
            return number.whole.map { target.value($0) } ?? target.value(number.real)
        }
    }

    private func stringWithoutSchema(_ text: String) throws(IngestError) -> Value {
        switch target.kind {
        case .bytes: return .blob(try bytes(text))
        case .integer, .real, .numeric:
            // The bytes of a decimal, in Base64, can look like any text, even like a number.
            guard isExport || Data(base64Encoded: text) == nil else {
                throw ambiguous("a number or its bytes", "decimal.handling.mode to double")
            }
            return try string(text)
        case .boolean, .date, .time, .timestamp, .json, .uuid, .text, .any: return try string(text)
        }
    }

    // MARK: Errors

    private func invalid(_ what: String) -> IngestError {
        IngestError(
            .invalidValue, "column \(field): the value is not \(what)",
            hint: "Check the connector's converters and transforms, or leave the column out of the mapping.")
    }

    private func ambiguous(_ meanings: String, _ setting: String) -> IngestError {
        IngestError(
            .ambiguousValue, "column \(field): without a schema, the value can be \(meanings)",
            hint: "Set value.converter.schemas.enable and key.converter.schemas.enable to true in the connector, or "
                + "\(setting).")
    }
}
