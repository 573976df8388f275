import MartletCore

/// Which column of the table a column of the source is, and how its values are read.
struct ColumnMapping: Sendable {
    private let table: String
    private let mapping: [String: String]?
    private let types: [String: ColumnType]
    /// The names of the table's columns, by their names in lower case.
    private let names: [String: String]
    /// In lower case.
    private let ignored: Set<String>

    init(_ mapping: TableMapping, types: [String: String], ignoring ignored: Set<String>) {
        table = mapping.table
        self.mapping = mapping.columns
        self.types = types.mapValues { ColumnType(declared: $0) }
        names = Dictionary(types.keys.map { ($0.lowercased(), $0) }, uniquingKeysWith: { first, _ in first })
        self.ignored = Set(ignored.map { $0.lowercased() })
    }

    /// Returns the column of the table. Nil if the column is left out. SQLite's names have no case.
    private func target(of field: String) -> String? {
        guard let name = mapping.map({ $0[field] }) ?? field, !ignored.contains(name.lowercased()) else { return nil }
        return names[name.lowercased()] ?? name
    }

    /// Returns the values of a key: of all its columns, and none is NULL.
    ///
    /// - Parameter schemas: nil if the record has no schema.
    func key(
        _ fields: [String: JSON], _ schemas: [String: ConnectSchema]?, isExport: Bool
    ) throws(IngestError) -> [String: Value] {
        var key: [String: Value] = [:]
        for (field, json) in fields.sorted(by: { $0.key < $1.key }) {
            guard let column = target(of: field) else {
                throw IngestError(
                    .columns, "column \(field) of the key goes to no column of table \(table)",
                    hint:
                        "Add it to ingest.topics.columns, or set message.key.columns in the connector to columns that "
                        + "identify the table's rows.")
            }
            let value = try value(json, field, column, schemas, isExport)
            guard json.isScalar || json.isVariableDecimal, !value.isNull else {
                throw IngestError(
                    .missingKey, "column \(field) of the record's key is NULL, or has several values",
                    hint: "Set message.key.columns in the connector to columns that identify the row.")
            }
            try add(value, column, to: &key)
        }
        return key
    }

    /// Returns the values of a row, without those that the source did not send.
    func row(
        _ fields: [String: JSON], _ schemas: [String: ConnectSchema]?, isExport: Bool
    ) throws(IngestError) -> [String: Value] {
        var row: [String: Value] = [:]
        for (field, json) in fields.sorted(by: { $0.key < $1.key }) {
            guard let column = target(of: field), !UnavailableValue.isPlaceholder(json) else { continue }
            try add(try value(json, field, column, schemas, isExport), column, to: &row)
        }
        return row
    }

    private func value(
        _ json: JSON, _ field: String, _ column: String, _ schemas: [String: ConnectSchema]?, _ isExport: Bool
    ) throws(IngestError) -> Value {
        let type = types[column]
        let schema = schemas?[field]
        if type == nil, schema == nil, !json.isNull {
            throw IngestError(
                .columns, "table \(table) has no column \(column), and the record does not tell its type",
                hint: "Add the column to the table, leave it out with ingest.topics.columns, or set "
                    + "value.converter.schemas.enable and key.converter.schemas.enable to true in the connector.")
        }
        return try ValueReader(field: field, type: type, isExport: isExport).value(json, schema)
    }

    private func add(_ value: Value, _ column: String, to row: inout [String: Value]) throws(IngestError) {
        guard row.updateValue(value, forKey: column) == nil else {
            throw IngestError(
                .columns, "two columns of the source are column \(column) of table \(table)",
                hint: "Map them to different columns in ingest.topics.columns.")
        }
    }
}
