import MartletCore

/// Reads the records of one topic: changes of rows in the envelope of Debezium, as JSON with or without schemas.
package struct RecordDecoder: Sendable {
    private let columns: ColumnMapping

    /// - Parameters:
    ///   - types: the declared types of the table's columns, by name. Empty if the table does not exist yet.
    ///   - ignored: the names of columns that the table computes by itself: those that are generated, and an integer
    ///     key that each node assigns. The source's values of these are left out.
    package init(mapping: TableMapping, types: [String: String], ignoring ignored: Set<String> = []) {
        columns = ColumnMapping(mapping, types: types, ignoring: ignored)
    }

    /// Reads a record.
    ///
    /// - Parameters:
    ///   - key: nil if the record has none.
    ///   - value: nil if the record has none.
    ///   - types: the header `martlet-types` of Martlet's export. Nil if the record has none.
    /// - Returns: nil for records without a row: heartbeats, messages, begins and ends of transactions, and changes of
    ///   the schema.
    /// - Throws: ``IngestError``. The error is the same however often the record is read.
    package func decode(key: [UInt8]?, value: [UInt8]?, types: [UInt8]? = nil) throws(IngestError) -> SourceEvent? {
        guard let value else { return try SourceEvent(operation: .null, key: self.key(key, nil, isExport: false)) }
        let record = try ConnectRecord(value, part: "value")
        guard !record.payload.isNull else {
            return try SourceEvent(operation: .null, key: self.key(key, nil, isExport: false))
        }
        guard let envelope = try Envelope(record, types: types) else { return nil }
        let row = envelope.operation == .delete ? "before" : "after"
        var event = try SourceEvent(
            operation: envelope.operation,
            key: self.key(key, envelope.types[row], isExport: envelope.isExport),
            milliseconds: envelope.milliseconds, position: SourcePosition(source: envelope.source))
        if let before = envelope.before {
            event.before = try columns.row(before, envelope.schema(of: "before"), isExport: envelope.isExport)
        }
        if envelope.operation != .delete {
            guard let after = envelope.after else {
                throw IngestError(
                    .notAnEvent, "the record has no row after the change",
                    hint: "Remove transforms that change the envelope from the connector.")
            }
            event.after = try columns.row(after, envelope.schema(of: "after"), isExport: envelope.isExport)
                .merging(event.key) { value, _ in value }
        }
        try check(event)
        return event
    }

    private func key(
        _ bytes: [UInt8]?, _ types: [String: ConnectSchema]?, isExport: Bool
    ) throws(IngestError) -> [String: Value] {
        let missing = IngestError(
            .missingKey, "the record has no key",
            hint: "Add a primary key to the table at the source, or set message.key.columns in the connector.")
        guard let bytes else { throw missing }
        let record = try ConnectRecord(bytes, part: "key")
        guard !record.payload.isNull else { throw missing }
        guard case .object(let fields) = record.payload, !fields.isEmpty else {
            throw IngestError(
                .missingKey, "the record's key has no columns",
                hint: "Remove transforms that change the key from the connector.")
        }
        return try columns.key(fields, record.schema?.fieldsByName ?? types, isExport: isExport)
    }

    /// Key and value have converters of their own: if one of them loses the meaning of a value, two rows would be one,
    /// or one row two.
    private func check(_ event: SourceEvent) throws(IngestError) {
        guard let row = event.after else { return }
        for (column, value) in event.key.sorted(by: { $0.key < $1.key }) where row[column] != value {
            throw IngestError(
                .columns, "column \(column) has one value in the record's key and another one in its row",
                hint: "Set key.converter and value.converter to the same in the connector.")
        }
    }
}
