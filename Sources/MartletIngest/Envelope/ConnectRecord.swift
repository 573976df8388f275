import Foundation

/// A key or a value as Kafka Connect's JSON converter writes it: `{"schema": ..., "payload": ...}`, or with
/// `schemas.enable=false` the payload alone.
struct ConnectRecord: Decodable {
    let schema: ConnectSchema?
    let payload: JSON

    init(from decoder: any Decoder) throws {
        let schemaName = MemberName("schema")
        let payloadName = MemberName("payload")
        if let members = try? decoder.container(keyedBy: MemberName.self), members.allKeys.count == 2,
            members.contains(schemaName), members.contains(payloadName),
            try members.decodeNil(forKey: schemaName)
                || (try? members.nestedContainer(keyedBy: MemberName.self, forKey: schemaName)) != nil
        {
            schema = try members.decodeIfPresent(ConnectSchema.self, forKey: schemaName)
            payload = try members.decode(JSON.self, forKey: payloadName)
        } else {
            schema = nil
            payload = try JSON(from: decoder)
        }
    }

    /// - Parameter part: `key` or `value`, for errors.
    /// - Throws: ``IngestError/Code/notJSON``.
    init(_ bytes: [UInt8], part: String) throws(IngestError) {
        do {
            self = try JSONDecoder().decode(ConnectRecord.self, from: Data(bytes))
        } catch {
            // The converters of schema registries begin with a zero and a number.
            let what = bytes.first == 0 ? "is in a binary format" : "can't be read as JSON"
            throw IngestError(
                .notJSON, "the record's \(part) \(what)",
                hint: "Set \(part).converter to org.apache.kafka.connect.json.JsonConverter in the connector.")
        }
    }
}
