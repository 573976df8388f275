import Foundation
import MartletCore

/// The parts of a change event, before its values are read.
struct Envelope {
    let operation: SourceEvent.Operation
    let before: [String: JSON]?
    let after: [String: JSON]?
    let source: [String: JSON]
    let milliseconds: Int64?
    private let schema: ConnectSchema?
    /// Whether Martlet's own export wrote the record.
    let isExport: Bool
    /// The types of values that don't have their columns' types, by row and field. Only Martlet's export names them.
    let types: [String: [String: ConnectSchema]]

    /// - Returns: nil for records without a row.
    /// - Throws: ``IngestError`` if the record is no event, or one that names no rows.
    init?(_ record: ConnectRecord, types: [UInt8]?) throws(IngestError) {
        guard case .object(let payload) = record.payload else { throw Self.notAnEvent }
        before = try Self.row(payload["before"])
        after = try Self.row(payload["after"])
        if case .object(let source)? = payload["source"] { self.source = source } else { source = [:] }
        // A row without an envelope may have a column with the name op.
        let hasRows = before != nil || after != nil || payload["before"] != nil && payload["after"] != nil
        switch payload["op"]?.text {
        case "c" where hasRows: operation = .create
        case "r" where hasRows: operation = .read
        case "u" where hasRows: operation = .update
        case "d" where hasRows: operation = .delete
        case "m" where !source.isEmpty && payload["message"] != nil: return nil
        case "t" where !source.isEmpty:
            throw IngestError(
                .truncated, "the table was truncated at the source, and the record does not name its rows",
                hint: "Delete the rows here if they are to go, then skip the record: martlet ingest --skip.")
        case nil where Self.hasNoRow(payload, record.schema?.name): return nil
        default: throw Self.notAnEvent
        }
        // Snapshots of older connectors have 0.
        milliseconds =
            [source["ts_ms"], payload["ts_ms"]].lazy.compactMap { json -> Int64? in
                guard case .number(let number)? = json, let time = number.whole, time > 0 else { return nil }
                return InputBounds.milliseconds.contains(time) ? time : nil
            }.first
        schema = record.schema
        isExport = source["connector"]?.text == "martlet"
        self.types = isExport ? try types.map(Self.types) ?? [:] : [:]
    }

    /// Returns the schemas of a row's fields, as far as they are known.
    func schema(of row: String) -> [String: ConnectSchema]? {
        schema.map { $0.fieldsByName[row]?.fieldsByName ?? [:] } ?? types[row]
    }

    private static func types(_ header: [UInt8]) throws(IngestError) -> [String: [String: ConnectSchema]] {
        guard let types = try? JSONDecoder().decode([String: [String: String]].self, from: Data(header)) else {
            throw IngestError(
                .notJSON, "the record's header martlet-types can't be read",
                hint: "Remove transforms that change headers between the export and this topic.")
        }
        return types.mapValues { $0.mapValues { ConnectSchema(type: $0) } }
    }

    private static func row(_ json: JSON?) throws(IngestError) -> [String: JSON]? {
        switch json {
        case nil, .null: nil
        case .object(let members): members
        case .boolean, .number, .string, .array: throw notAnEvent
        }
    }

    /// Heartbeats, begins and ends of transactions, and changes of the schema.
    private static func hasNoRow(_ payload: [String: JSON], _ schema: String?) -> Bool {
        switch schema {
        case "io.debezium.connector.common.Heartbeat", "io.debezium.connector.common.TransactionMetadataValue":
            return true
        default: break
        }
        let names = Set(payload.keys)
        return names == ["ts_ms"]
            || names.isSuperset(of: ["status", "id", "event_count", "data_collections"])
            || names.isSuperset(of: ["source", "ddl", "tableChanges"])
    }

    private static let notAnEvent = IngestError(
        .notAnEvent, "the record is no change event of Debezium",
        hint: "Remove the transform ExtractNewRecordState, and others that change the envelope, from the connector.")
}
