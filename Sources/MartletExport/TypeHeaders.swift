package import MartletBus

/// The headers of a record with values that would be read wrongly without a schema: bytes in a column for text, text in
/// one for bytes, and a number that is not a time in one for times.
package enum TypeHeaders {
    /// The types of these values: `{"after":{"column":"int64"}}`.
    private static let types = "martlet-types"
    /// The columns of those that are bytes: `["column"]`.
    private static let bytes = "martlet-bytes"

    package static func headers(_ record: ExportRecord, of table: ExportTable) -> [MessageHeader] {
        var types: [String: [String: ConnectType]] = [:]
        for (name, row) in [("before", record.before), ("after", record.after)] {
            guard let row else { continue }
            for (field, value) in zip(table.fields, table.row(record.identity, number: row.number, row.values)) {
                let type = field.type.type(of: value)
                if type != field.type, [type, field.type].contains(.bytes) || field.type.isTime && type != .string {
                    types[name, default: [:]][field.name] = type
                }
            }
        }
        guard !types.isEmpty else { return [] }
        let rows = types.mapValues { JSONText.object($0.mapValues { JSONText.quoted($0.type) }) }
        var headers = [MessageHeader(Self.types, JSONText.object(rows))]
        let columns = Set(types.values.joined().filter { $0.value == .bytes }.map(\.key))
        if !columns.isEmpty {
            let list = columns.sorted().map(JSONText.quoted).joined(separator: ",")
            headers.append(MessageHeader(bytes, "[\(list)]"))
        }
        return headers
    }
}
