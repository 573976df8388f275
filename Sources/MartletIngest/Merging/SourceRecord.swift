import MartletBus
import MartletCore

/// A record of a source, decoded as far as that is possible without the store.
struct SourceRecord: Sendable {
    var offset: Int64
    /// The offset of the first record of an unreadable batch, of which this is the last. Else ``offset``.
    var first: Int64
    /// The time that Kafka gives the record, in milliseconds since 1970. Nil if it gives none.
    var timestamp: Int64?
    var byteCount: Int
    var key: [UInt8]
    /// Whether the record has no value.
    var isNull: Bool
    /// Tells the record from another one at its offset. Nil if the record can't be read as a whole.
    var digest: [UInt8]?
    /// What it says. Nil if it tells of no row.
    var event: Result<SourceEvent?, any Error>

    init(_ message: IncomingMessage, _ decoder: RecordDecoder) {
        offset = message.position.offset
        first = message.batchStart ?? offset
        timestamp = message.timestamp >= 0 ? message.timestamp : nil
        key = message.key
        isNull = message.isNull
        byteCount = message.key.count + message.payload.count
        if message.problem == nil, message.cut == nil {
            digest = Array(Self.digest(of: message).prefix(8))
        }
        event = Result { try Self.event(message, decoder) }
    }

    private static func digest(of message: IncomingMessage) -> [UInt8] {
        func sha256(_ bytes: [UInt8]) -> [UInt8] { bytes.withUnsafeBytes { ContentDigest.sha256($0) } }
        let value = message.isNull ? [] : sha256(message.payload)
        return sha256(sha256(message.key) + value + Array("\(message.timestamp)".utf8))
    }

    private static func event(_ message: IncomingMessage, _ decoder: RecordDecoder) throws -> SourceEvent? {
        if let problem = message.problem {
            throw IngestError(
                .unreadable, "the record can't be read: \(problem)",
                hint: "Check the topic's partition on the broker, or skip the record with `martlet ingest --skip`.")
        }
        if let cut = message.cut {
            throw IngestError(
                .unreadable, "the record has \(cut.byteCount) bytes",
                hint: "Raise security.limits.maxMessageBytes, or skip the record with `martlet ingest --skip`.")
        }
        return try decoder.decode(
            key: message.key.isEmpty ? nil : message.key, value: message.isNull ? nil : message.payload,
            types: message.header("martlet-types"))
    }
}
