import Crypto
import Foundation
package import MartletBus
package import MartletCore
import SwiftProtobuf

/// The encoding of snapshots on their topic. Stateless.
package enum SnapshotFormat {
    package static let version: UInt32 = 1

    /// The numbers of fields, in `SnapshotPart` and in `SnapshotContents`.
    static let versionField: UInt64 = 1
    static let contentsField: UInt64 = 3
    static let rowsField: UInt64 = 2

    package static func encode(_ kind: WireSnapshotPart.OneOf_Kind) throws -> [UInt8] {
        var part = WireSnapshotPart()
        part.format = version
        part.kind = kind
        guard case .contents(let contents) = kind else { return try part.serializedBytes() }
        return try encode(contents)
    }

    /// Returns the bytes that the whole message would have. Protobuf writes the size of a message before its bytes, and
    /// computes the sizes of a row's values once for each message around them; row by row, once is enough.
    private static func encode(_ contents: WireSnapshotContents) throws -> [UInt8] {
        var bytes: [UInt8] = []
        func append(_ field: UInt64, _ content: [UInt8]) {
            Varint.append(field << 3 | 2, to: &bytes)
            Varint.append(counted: content, to: &bytes)
        }
        for tombstone in contents.tombstones { append(1, try tombstone.serializedBytes()) }
        for row in contents.rows { append(rowsField, try row.serializedBytes()) }
        for payload in contents.deferred { append(3, Array(payload)) }
        for chunk in contents.chunks { append(4, try chunk.serializedBytes()) }
        var part: [UInt8] = []
        part.reserveCapacity(bytes.count + 16)
        Varint.append(versionField << 3, to: &part)
        Varint.append(UInt64(version), to: &part)
        Varint.append(contentsField << 3 | 2, to: &part)
        Varint.append(counted: bytes, to: &part)
        return part
    }

    /// - Throws: ``/MartletCore/StoreError`` with code `.newerVersion` or `.corrupt`.
    package static func decode(_ bytes: [UInt8]) throws(StoreError) -> WireSnapshotPart.OneOf_Kind {
        let part: WireSnapshotPart
        do {
            try WireShape.snapshotPart.checkFields(bytes)
            part = try WireSnapshotPart(serializedBytes: bytes)
        } catch {
            throw undecodable
        }
        guard part.format <= version else {
            throw StoreError(
                .newerVersion,
                "The snapshot has format \(part.format); this program supports formats up to \(version).",
                hint: "Update Martlet. Nothing was changed.")
        }
        guard part.format > 0, let kind = part.kind else { throw damaged("a part has no contents") }
        if case .header(let header) = kind { try header.checkBounds() }
        return kind
    }

    static let undecodable = damaged("a part can't be decoded")

    package static func damaged(_ what: String) -> StoreError {
        StoreError(
            .corrupt, "The snapshot is invalid: \(what).",
            hint: "Load an older one, or wait for the next one. What was applied of it is correct, and stays.")
    }

    /// Returns the SHA-256 of a part.
    package static func hash(_ part: [UInt8]) -> [UInt8] { Array(SHA256.hash(data: part)) }

    /// Returns the digest of all parts through this one.
    package static func digest(_ before: [UInt8], _ part: [UInt8]) -> [UInt8] {
        digest(before, hash: hash(part))
    }

    /// Returns the digest of all parts through the one with this SHA-256.
    package static func digest(_ before: [UInt8], hash: [UInt8]) -> [UInt8] {
        Array(SHA256.hash(data: before + hash))
    }
}

/// Names of the headers that only snapshot messages have. Part of the wire format.
package enum SnapshotMessageHeader {
    /// The snapshot's UUID.
    package static let snapshot = "martlet-snapshot"
    /// The message's number within its snapshot, starting at 0.
    package static let number = "martlet-number"
    /// The number of the part that the message contains, entirely or as a chunk.
    package static let part = "martlet-part"
    /// The number of messages in the snapshot. On the last message only.
    package static let count = "martlet-count"
}

/// The contents of a snapshot message's headers.
package struct SnapshotEnvelope: Sendable, Equatable {
    package var snapshot: NodeID
    package var maker: NodeID
    package var number: Int
    package var part: Int
    package var chunkIndex = 0
    package var chunkCount = 1
    /// The number of messages in the snapshot. Set on the last message only.
    package var count: Int?

    package init(snapshot: NodeID, maker: NodeID, number: Int, part: Int) {
        self.snapshot = snapshot
        self.maker = maker
        self.number = number
        self.part = part
    }

    /// Reads the headers of a message. Returns nil if it is not a snapshot message.
    package init?(_ message: IncomingMessage) {
        func text(_ name: String) -> String? { message.header(name).map { String(decoding: $0, as: UTF8.self) } }
        func number(_ name: String) -> Int? {
            InputBounds.number(message.header(name), in: 0...Int64(InputBounds.maxMessages)).map(Int.init)
        }
        func uuid(_ name: String) -> NodeID? { text(name).flatMap(UUID.init(uuidString:)).map(NodeID.init) }
        guard let snapshot = uuid(SnapshotMessageHeader.snapshot), let maker = uuid(WireHeader.origin),
            let place = number(SnapshotMessageHeader.number), let part = number(SnapshotMessageHeader.part)
        else { return nil }
        self.init(snapshot: snapshot, maker: maker, number: place, part: part)
        count = number(SnapshotMessageHeader.count)
        guard let chunk = text(WireHeader.chunk) else { return }
        let parts = chunk.split(separator: "/").map { Int($0) }
        guard parts.count == 2, let index = parts[0], let all = parts[1], index >= 0, index < all, index <= place,
            all <= InputBounds.maxChunks
        else { return nil }
        (chunkIndex, chunkCount) = (index, all)
    }
}

/// Splits the parts of a snapshot into messages.
package struct SnapshotFramer {
    package let snapshot: NodeID
    package let maker: NodeID
    /// Which of the maker's two sets of keys the snapshot uses. Snapshots alternate between them, so a snapshot is
    /// overwritten by the second one after it.
    package let slot: Int
    package let maxBytes: Int
    package private(set) var nextNumber = 0
    package private(set) var nextPart = 0

    package init(snapshot: NodeID, maker: NodeID, slot: Int, maxBytes: Int) {
        self.snapshot = snapshot
        self.maker = maker
        self.slot = slot
        self.maxBytes = maxBytes
    }

    package mutating func messages(_ part: [UInt8], isLast: Bool) -> [OutgoingMessage] {
        let count = max(1, (part.count + maxBytes - 1) / maxBytes)
        let first = nextNumber
        defer {
            nextNumber += count
            nextPart += 1
        }
        return (0..<count).map { index in
            let payload = Array(part[(index * maxBytes)..<min(part.count, (index + 1) * maxBytes)])
            var headers = [
                MessageHeader(WireHeader.format, WireEncoding.protobuf.rawValue),
                MessageHeader(WireHeader.origin, maker.description),
                MessageHeader(SnapshotMessageHeader.snapshot, snapshot.description),
                MessageHeader(SnapshotMessageHeader.number, String(first + index)),
                MessageHeader(SnapshotMessageHeader.part, String(nextPart)),
            ]
            if count > 1 { headers.append(MessageHeader(WireHeader.chunk, "\(index)/\(count)")) }
            if isLast, index == count - 1 {
                headers.append(MessageHeader(SnapshotMessageHeader.count, String(first + count)))
            }
            headers.append(MessageHeader(WireHeader.checksum, CRC32.digits(payload)))
            return OutgoingMessage(
                key: key(first + index), headers: headers, payload: payload, tag: UInt64(first + index))
        }
    }

    /// Returns an empty message that replaces a message of an older, longer snapshot with the same keys.
    package func eraser(_ number: Int) -> OutgoingMessage {
        OutgoingMessage(key: key(number), headers: [], payload: [], tag: UInt64(number))
    }

    private func key(_ number: Int) -> [UInt8] { Array("\(maker)/\(slot)/\(number)".utf8) }
}
