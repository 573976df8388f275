import Foundation
package import MartletCore

/// Writes records in the envelope of Debezium, as JSON with or without the schemas of Kafka Connect.
///
/// The names of fields, schemas and logical types are those of Debezium 2 and 3, so that its consumers understand the
/// records; `docs/export.md` has an example of each.
package struct EnvelopeEncoder: Sendable {
    /// The value of `source.connector`.
    package static let connector = "martlet"

    private let prefix: String
    private let version: String
    private let schemas: Bool

    /// - Parameters:
    ///   - prefix: the prefix of all topics, which is `source.name`.
    ///   - version: the version of this program.
    package init(prefix: String, version: String, schemas: Bool) {
        self.prefix = prefix
        self.version = version
        self.schemas = schemas
    }

    // MARK: Rows

    /// Returns the key of a row's records.
    package func key(_ identity: StableID, of table: ExportTable) -> [UInt8] {
        let parts = table.key(identity).map {
            (field: $0.field, type: $0.field.type.type(of: $0.value), value: $0.value)
        }
        var json = JSONText()
        beginPayload(&json) { schema in
            schema.raw(#"{"type":"struct","fields":["#)
            for (index, part) in parts.enumerated() {
                if index > 0 { schema.raw(",") }
                part.type.writeSchema(of: part.field.name, isOptional: false, to: &schema)
            }
            schema.raw(#"],"optional":false,"name":"#)
            schema.string("\(table.topic).Key")
            schema.raw("}")
        }
        json.raw("{")
        for (index, part) in parts.enumerated() {
            if index > 0 { json.raw(",") }
            json.string(part.field.name)
            json.raw(":")
            part.type.write(part.value, to: &json)
        }
        json.raw("}")
        endPayload(&json)
        return json.bytes
    }

    /// Returns the value of a record.
    ///
    /// - Parameters:
    ///   - transaction: nil for rows that were read.
    ///   - now: milliseconds since 1970.
    package func value(
        _ record: ExportRecord, of table: ExportTable, _ transaction: (ExportTransaction, ExportOrder)?, now: Int64
    ) -> [UInt8] {
        let before = record.before.map { table.row(record.identity, number: $0.number, $0.values) }
        let after = record.after.map { table.row(record.identity, number: $0.number, $0.values) }
        var json = JSONText()
        beginPayload(&json) { schema in
            writeEnvelopeSchema(table, before, after, &schema)
        }
        json.raw(#"{"before":"#)
        write(before, table, &json)
        json.raw(#","after":"#)
        write(after, table, &json)
        json.raw(#","source":"#)
        writeSource(record, table, transaction?.0, &json)
        json.raw(#","transaction":"#)
        if let (transaction, order) = transaction {
            json.raw(#"{"id":"#)
            json.string(transaction.id)
            json.raw(#","total_order":\#(order.total),"data_collection_order":\#(order.inTable)}"#)
        } else {
            json.raw("null")
        }
        json.raw(#","op":"\#(record.operation.rawValue)","ts_ms":\#(now)}"#)
        endPayload(&json)
        return json.bytes
    }

    /// Returns the value of the record that deletes a row of which only the key is known.
    ///
    /// - Parameter key: as it is on the topic. The row before is null if the key is not one that the table has today.
    package func removal(key: [UInt8], of table: ExportTable, now: Int64) -> [UInt8] {
        var json = JSONText()
        beginPayload(&json) { schema in
            writeEnvelopeSchema(table, nil, nil, &schema)
        }
        json.raw(#"{"before":"#)
        if let before = Self.before(key, table) { json.raw(before) } else { json.raw("null") }
        json.raw(#","after":null,"source":"#)
        writeSource(Self.removed(at: now), table, nil, &json)
        json.raw(#","transaction":null,"op":"d","ts_ms":\#(now)}"#)
        endPayload(&json)
        return json.bytes
    }

    /// A record of a row of which only the key is known.
    static func removed(at now: Int64) -> ExportRecord {
        ExportRecord(identity: StableID(values: []), operation: .delete, stamp: nil, time: now)
    }

    /// Returns the payload of a key if it is what the schema of the table's rows says. Nil if it is not: nobody could
    /// read it.
    private static func before(_ key: [UInt8], _ table: ExportTable) -> [UInt8]? {
        let payload = payload(ofKey: key)
        guard let row = try? JSONSerialization.jsonObject(with: Data(payload)) as? [String: Any],
            Set(row.keys) == Set(table.keyFields.map(\.name))
        else { return nil }
        let fits = table.keyFields.allSatisfy { field in
            switch field.type.type {
            case "string", "bytes": row[field.name] is String
            default: row[field.name] is NSNumber
            }
        }
        return fits ? payload : nil
    }

    /// Quotes in names and values are escaped, so that what separates schema and payload occurs only there.
    private static func payload(ofKey key: [UInt8]) -> [UInt8] {
        let separator = Array(#","payload":"#.utf8)
        guard key.starts(with: Array(#"{"schema":{"type":"struct""#.utf8)), let found = key.firstRange(of: separator)
        else { return key }
        return Array(key[found.upperBound...].dropLast())
    }

    private func write(_ row: [Value]?, _ table: ExportTable, _ json: inout JSONText) {
        guard let row else { return json.raw("null") }
        json.raw("{")
        for (index, (field, value)) in zip(table.fields, row).enumerated() {
            if index > 0 { json.raw(",") }
            json.string(field.name)
            json.raw(":")
            field.type.type(of: value).write(value, to: &json)
        }
        json.raw("}")
    }

    private func writeSource(
        _ record: ExportRecord, _ table: ExportTable, _ transaction: ExportTransaction?, _ json: inout JSONText
    ) {
        json.raw(#"{"version":"#)
        json.string(version)
        json.raw(#","connector":"\#(Self.connector)","name":"#)
        json.string(prefix)
        json.raw(#","ts_ms":\#(record.time),"snapshot":"\#(record.operation == .read)","db":"main","table":"#)
        json.string(table.name)
        json.raw(#","sequence":"#)
        json.string(transaction?.sequence.map { String($0) })
        json.raw(#","origin":"#)
        json.string(transaction?.origin?.description.lowercased())
        json.raw(#","origin_name":"#)
        json.string(transaction?.originName)
        json.raw(#","author":"#)
        json.string(transaction?.author)
        json.raw(#","hlc":"#)
        if let stamp = record.stamp { json.integer(stamp.time.stored) } else { json.raw("null") }
        json.raw("}")
    }

    // MARK: Transactions

    package func transactionKey(_ id: String) -> [UInt8] {
        var json = JSONText()
        beginPayload(&json) { schema in
            schema.raw(
                """
                {"type":"struct","fields":[{"type":"string","optional":false,"field":"id"}],"optional":false,\
                "name":"io.debezium.connector.common.TransactionMetadataKey","version":1}
                """)
        }
        json.raw(#"{"id":"#)
        json.string(id)
        json.raw("}")
        endPayload(&json)
        return json.bytes
    }

    /// Returns the record that begins a transaction, or ends it.
    ///
    /// - Parameter counts: how many records each table has had, for the end.
    package func transactionValue(_ id: String, counts: [(table: String, count: Int64)]?, now: Int64) -> [UInt8] {
        var json = JSONText()
        beginPayload(&json) { $0.raw(Self.transactionSchema) }
        json.raw(#"{"status":"\#(counts == nil ? "BEGIN" : "END")","id":"#)
        json.string(id)
        json.raw(#","event_count":"#)
        if let counts {
            json.integer(counts.reduce(0) { $0 + $1.count })
            json.raw(#","data_collections":["#)
            for (index, entry) in counts.enumerated() {
                if index > 0 { json.raw(",") }
                json.raw(#"{"data_collection":"#)
                json.string(entry.table)
                json.raw(#","event_count":\#(entry.count)}"#)
            }
            json.raw("]")
        } else {
            json.raw(#"null,"data_collections":null"#)
        }
        json.raw(#","ts_ms":\#(now)}"#)
        endPayload(&json)
        return json.bytes
    }

    // MARK: Schemas

    private func beginPayload(_ json: inout JSONText, _ writeSchema: (inout JSONText) -> Void) {
        guard schemas else { return }
        json.raw(#"{"schema":"#)
        writeSchema(&json)
        json.raw(#","payload":"#)
    }

    private func endPayload(_ json: inout JSONText) {
        if schemas { json.raw("}") }
    }

    private func writeEnvelopeSchema(
        _ table: ExportTable, _ before: [Value]?, _ after: [Value]?, _ schema: inout JSONText
    ) {
        schema.raw(#"{"type":"struct","fields":["#)
        writeRowSchema(table, before, field: "before", &schema)
        schema.raw(",")
        writeRowSchema(table, after, field: "after", &schema)
        schema.raw(",\(Self.sourceSchema),\(Self.blockSchema)")
        schema.raw(
            """
            ,{"type":"string","optional":false,"field":"op"},{"type":"int64","optional":true,"field":"ts_ms"}],\
            "optional":false,"name":
            """)
        schema.string("\(table.topic).Envelope")
        schema.raw(#","version":1}"#)
    }

    private func writeRowSchema(_ table: ExportTable, _ row: [Value]?, field name: String, _ schema: inout JSONText) {
        schema.raw(#"{"type":"struct","fields":["#)
        for (index, field) in table.fields.enumerated() {
            if index > 0 { schema.raw(",") }
            let value = row?[index]
            // All but the key are optional: a delete may know nothing else of the row.
            field.type.type(of: value ?? .null)
                .writeSchema(of: field.name, isOptional: !field.isKey || value?.isNull ?? false, to: &schema)
        }
        schema.raw(#"],"optional":true,"name":"#)
        schema.string("\(table.topic).Value")
        schema.raw(#","field":"\#(name)"}"#)
    }

    private static func field(_ name: String, _ type: String, isOptional: Bool) -> String {
        #"{"type":"\#(type)","optional":\#(isOptional),"field":"\#(name)"}"#
    }

    private static let sourceSchema: String = {
        let fields = [
            field("version", "string", isOptional: false), field("connector", "string", isOptional: false),
            field("name", "string", isOptional: false), field("ts_ms", "int64", isOptional: false),
            field("snapshot", "string", isOptional: true), field("db", "string", isOptional: false),
            field("table", "string", isOptional: false), field("sequence", "string", isOptional: true),
            field("origin", "string", isOptional: true), field("origin_name", "string", isOptional: true),
            field("author", "string", isOptional: true), field("hlc", "int64", isOptional: true),
        ]
        return #"{"type":"struct","fields":["# + fields.joined(separator: ",")
            + #"],"optional":false,"name":"martlet.Source","version":1,"field":"source"}"#
    }()

    private static let blockSchema: String = {
        let fields = [
            field("id", "string", isOptional: false), field("total_order", "int64", isOptional: false),
            field("data_collection_order", "int64", isOptional: false),
        ]
        return #"{"type":"struct","fields":["# + fields.joined(separator: ",")
            + #"],"optional":true,"name":"event.block","version":1,"field":"transaction"}"#
    }()

    private static let transactionSchema: String = {
        let counted = [
            field("data_collection", "string", isOptional: false), field("event_count", "int64", isOptional: false),
        ].joined(separator: ",")
        let item =
            #"{"type":"struct","fields":[\#(counted)],"optional":false,"name":"event.collection","version":1}"#
        let fields = [
            field("status", "string", isOptional: false), field("id", "string", isOptional: false),
            field("event_count", "int64", isOptional: true),
            #"{"type":"array","items":\#(item),"optional":true,"field":"data_collections"}"#,
            field("ts_ms", "int64", isOptional: false),
        ].joined(separator: ",")
        let name = "io.debezium.connector.common.TransactionMetadataValue"
        return #"{"type":"struct","fields":[\#(fields)],"optional":false,"name":"\#(name)","version":1}"#
    }()
}
