import Foundation
package import MartletBus
package import MartletCore
import SwiftProtobuf

/// The encodings of transactions on the topic.
public enum WireEncoding: String, Sendable, CaseIterable {
    /// Protocol Buffers, binary. The default.
    case protobuf
    /// The JSON mapping of the same messages: three to four times larger, but readable.
    case json

    /// Detects the encoding of a payload: JSON begins with a brace, and no binary message does.
    package init(of payload: [UInt8]) { self = payload.first == UInt8(ascii: "{") ? .json : .protobuf }
}

/// Names of the headers. Part of the wire format.
package enum WireHeader {
    package static let format = "martlet-format"
    package static let origin = "martlet-origin"
    package static let sequence = "martlet-sequence"
    /// `i/n`, where i starts at 0. Absent if the transaction fits in one message.
    package static let chunk = "martlet-chunk"
    /// The CRC-32 of the message's payload, as eight hexadecimal digits. Absent in messages of older nodes.
    package static let checksum = "martlet-crc32"
    /// The size of the whole transaction in bytes. On chunks only. Absent in messages of older nodes.
    package static let size = "martlet-size"
    /// The CRC-32 of the whole transaction, like ``checksum``. On chunks only. Absent if the payload is encrypted, and
    /// in messages of older nodes.
    package static let wholeChecksum = "martlet-whole-crc32"
    /// The ID of the key that the payload is encrypted with. Absent if it is not encrypted.
    package static let keyID = "martlet-key"
    /// The origin's signature, in Base64. Absent if the origin does not sign.
    package static let signature = "martlet-signature"
    /// The headers of W3C Trace Context, under their standard names. Neither encrypted nor signed.
    package static let traceParent = "traceparent"
    package static let traceState = "tracestate"
}

/// Encodes and decodes transactions. Stateless.
package enum WireFormat {
    package static let version: UInt32 = 1

    package static func encode(_ transaction: WireTransaction, as encoding: WireEncoding) throws -> [UInt8] {
        switch encoding {
        case .protobuf:
            var writer = FieldWriter()
            writer.write(transaction)
            return writer.bytes
        case .json: return try transaction.jsonUTF8Bytes()
        }
    }

    /// Encodes one change in Protobuf.
    package static func encode(_ change: WireChange) -> [UInt8] {
        var writer = FieldWriter()
        writer.write(change)
        return writer.bytes
    }

    /// Returns the bytes that follow the last change of a transaction.
    package static func closing(_ encoding: WireEncoding) -> [UInt8] {
        encoding == .json ? Array("]}".utf8) : []
    }

    /// Decodes a transaction in either encoding, with all changes at once. Use
    /// ``DecodedTransaction/init(payload:)`` for input from outside that may be large.
    ///
    /// - Throws: ``WireError`` if the bytes are not a transaction, or have a version that this program doesn't know.
    package static func decode(_ bytes: [UInt8]) throws(WireError) -> WireTransaction {
        let transaction: WireTransaction
        do {
            transaction =
                switch WireEncoding(of: bytes) {
                case .json: try WireTransaction(jsonUTF8Bytes: bytes, options: jsonOptions)
                case .protobuf: try WireTransaction(serializedBytes: bytes)
                }
        } catch {
            throw WireError("The payload is not a transaction: \(error)")
        }
        guard transaction.format >= 1 else { throw WireError("The payload has no format version.") }
        guard transaction.format <= version else {
            throw WireError(
                "The transaction has format \(transaction.format); this program supports formats up to \(version).")
        }
        guard NodeID(bytes: transaction.origin) != nil else { throw WireError("The origin is not a UUID.") }
        guard transaction.clockNode.isEmpty || NodeID(bytes: transaction.clockNode) != nil else {
            throw WireError("The node ID of the clocks is not a UUID.")
        }
        guard InputBounds.sequence(transaction.sequence) != nil else {
            throw WireError("The sequence is not between 1 and 2^53 - 1.")
        }
        guard InputBounds.milliseconds.contains(transaction.timestampMs), InputBounds.time(transaction.hlc) != nil
        else {
            throw WireError("The time of the transaction is out of range.")
        }
        guard transaction.restates.count <= InputBounds.maxReplaced else {
            throw WireError("It replaces too many transactions: \(transaction.restates.count).")
        }
        guard InputBounds.isName(transaction.originName) else { throw WireError("The name of the origin is too long.") }
        return transaction
    }

    /// Decodes one change of unknown size. Checks the number of its fields first.
    package static func decodeChange(_ bytes: [UInt8], as encoding: WireEncoding) throws(WireError) -> WireChange {
        switch encoding {
        case .json: try JSONElements.checkCount(bytes)
        case .protobuf: try WireShape.change.checkFields(bytes)
        }
        do {
            return switch encoding {
            case .json: try WireChange(jsonUTF8Bytes: bytes, options: jsonOptions)
            case .protobuf: try WireChange(serializedBytes: bytes)
            }
        } catch {
            throw WireError("The payload is not a transaction: \(error)")
        }
    }

    private static var jsonOptions: JSONDecodingOptions {
        var options = JSONDecodingOptions()
        options.ignoreUnknownFields = true
        return options
    }
}

extension WireTransaction {
    /// The node of the changes' stamps. ``/MartletCore/NodeID/none`` if the origin is not a UUID.
    package var clockedBy: NodeID { NodeID(bytes: clockNode.isEmpty ? origin : clockNode) ?? .none }
}

/// The contents of a message's headers.
package struct WireEnvelope: Sendable, Equatable {
    package var origin: NodeID
    package var sequence: Int64
    package var chunk: (index: Int, count: Int)?
    /// The size of the whole transaction in bytes. On chunks only.
    package var size: Int?
    /// The checksum of the whole transaction, as it is in the header. On chunks only.
    package var wholeChecksum: [UInt8]?

    package static func == (a: WireEnvelope, b: WireEnvelope) -> Bool {
        a.origin == b.origin && a.sequence == b.sequence && a.chunk?.index == b.chunk?.index
            && a.chunk?.count == b.chunk?.count
    }

    package init(origin: NodeID, sequence: Int64, chunk: (index: Int, count: Int)? = nil) {
        self.origin = origin
        self.sequence = sequence
        self.chunk = chunk
    }

    package init(_ message: IncomingMessage) throws(WireError) {
        var parser = OriginParser()
        try self.init(message, &parser)
    }

    package init(_ message: IncomingMessage, _ parser: inout OriginParser) throws(WireError) {
        guard let header = message.header(WireHeader.origin), let origin = parser.node(header) else {
            throw WireError("The message has no valid \(WireHeader.origin) header.")
        }
        guard let sequence = InputBounds.number(message.header(WireHeader.sequence), in: InputBounds.sequences) else {
            throw WireError("The message has no valid \(WireHeader.sequence) header.")
        }
        self.init(origin: origin, sequence: sequence)
        guard let header = message.header(WireHeader.chunk) else { return }
        let parts = String(decoding: header, as: UTF8.self).split(separator: "/").map { Int($0) }
        guard parts.count == 2, let index = parts[0], let count = parts[1], index >= 0, index < count,
            count <= InputBounds.maxChunks
        else {
            throw WireError("The \(WireHeader.chunk) header is not i/n.")
        }
        chunk = (index, count)
        wholeChecksum = message.header(WireHeader.wholeChecksum)
        guard let header = message.header(WireHeader.size) else { return }
        // A chunk has at least one byte.
        guard let size = InputBounds.number(header, in: Int64(count)...InputBounds.greatest) else {
            throw WireError("The message has no valid \(WireHeader.size) header.")
        }
        self.size = Int(size)
    }
}

extension IncomingMessage {
    /// False if the payload does not match its checksum: bytes may have been cut off or changed, and the rest may still
    /// decode as a transaction.
    package var isIntact: Bool {
        guard let checksum = header(WireHeader.checksum) else { return true }
        return checksum == CRC32.digits(payload)
    }
}

extension WireChange {
    package func changeKind() throws(WireError) -> ChangeKind {
        guard let kind = ChangeKind(kind) else { throw WireError("A change of \(entity) has an unknown kind.") }
        return kind
    }
}

extension WireChangeKind {
    package init(_ kind: ChangeKind) {
        switch kind {
        case .insert: self = .insert
        case .update: self = .update
        case .delete: self = .delete
        }
    }
}

extension ChangeKind {
    /// Nil for a kind that this program doesn't know.
    init?(_ wire: WireChangeKind) {
        switch wire {
        case .insert: self = .insert
        case .update: self = .update
        case .delete: self = .delete
        default: return nil
        }
    }
}

extension WireError {
    package static let notIntact = WireError("Payload checksum mismatch.")
}

/// Parses origins in headers. Most messages have the same origin as the one before, which is cached.
package struct OriginParser {
    private var last: (bytes: [UInt8], node: NodeID)?

    package mutating func node(_ bytes: [UInt8]) -> NodeID? {
        if let last, last.bytes == bytes { return last.node }
        guard let node = NodeID(text: bytes) else { return nil }
        last = (bytes, node)
        return node
    }
}

/// Splits an encoded transaction into messages that the broker accepts.
package struct Chunker: Sendable {
    /// The maximum payload of one message, in bytes.
    package var maxBytes: Int
    package let encoding: WireEncoding
    private let key: [UInt8]
    private let format: MessageHeader
    private let origin: MessageHeader

    package init(maxBytes: Int, node: NodeID, encoding: WireEncoding) {
        self.maxBytes = maxBytes
        self.encoding = encoding
        key = Array(node.description.utf8)
        format = MessageHeader(WireHeader.format, encoding.rawValue)
        origin = MessageHeader(WireHeader.origin, key)
    }

    /// Returns how many messages a transaction of this size takes.
    package func count(for size: Int) -> Int { max(1, (size + maxBytes - 1) / maxBytes) }

    /// Returns the range of the transaction's bytes that one of its messages contains.
    package func range(_ index: Int, of size: Int) -> Range<Int> {
        min(size, index * maxBytes)..<min(size, (index + 1) * maxBytes)
    }

    /// Returns one of the messages of a transaction. All have its sequence as their tag.
    ///
    /// - Parameters:
    ///   - payload: the bytes of ``range(_:of:)``.
    ///   - size: the size of the whole transaction in bytes.
    ///   - checksum: that of the whole transaction. Only chunks have it.
    ///   - trace: headers that each message gets.
    package func message(
        _ index: Int, sequence: Int64, payload: [UInt8], size: Int, checksum: [UInt8]? = nil,
        trace: [MessageHeader] = []
    ) -> OutgoingMessage {
        guard size > maxBytes else { return message(sequence, payload, trace) }
        return message(
            sequence, payload,
            [
                MessageHeader(WireHeader.chunk, "\(index)/\(count(for: size))"),
                MessageHeader(WireHeader.size, String(size)),
            ] + (checksum.map { [MessageHeader(WireHeader.wholeChecksum, $0)] } ?? []) + trace)
    }

    private func message(_ sequence: Int64, _ payload: [UInt8], _ further: [MessageHeader]) -> OutgoingMessage {
        var headers: [MessageHeader] = []
        headers.reserveCapacity(further.count + 4)
        headers.append(format)
        headers.append(origin)
        headers.append(MessageHeader(WireHeader.sequence, String(sequence)))
        headers += further
        headers.append(MessageHeader(WireHeader.checksum, CRC32.digits(payload)))
        return OutgoingMessage(key: key, headers: headers, payload: payload, tag: UInt64(sequence))
    }
}
