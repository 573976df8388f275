import Foundation
package import MartletBus
package import MartletCore
package import MartletMerge
import SwiftProtobuf

/// The encoding of checks on their topic. Stateless.
package enum AntiEntropyFormat {
    package static let version: UInt32 = 1

    package static func message(_ wire: WireCheckMessage) throws -> OutgoingMessage {
        var wire = wire
        wire.format = version
        let payload = try encode(wire)
        let sender = NodeID(bytes: wire.header.maker)?.description ?? ""
        let check = NodeID(bytes: wire.check)?.description ?? ""
        return OutgoingMessage(
            key: Array(sender.utf8),
            headers: [
                MessageHeader(WireHeader.format, WireEncoding.protobuf.rawValue),
                MessageHeader(WireHeader.origin, sender), MessageHeader(AntiEntropyMessage.header, check),
                MessageHeader(WireHeader.checksum, CRC32.digits(payload)),
            ], payload: payload, tag: UInt64(wire.step))
    }

    package static func encode(_ wire: WireCheckMessage) throws -> [UInt8] { try wire.serializedBytes() }

    /// - Throws: ``/MartletCore/StoreError`` with code `.newerVersion` or `.corrupt`.
    package static func decode(_ message: IncomingMessage) throws(StoreError) -> AntiEntropyMessage {
        guard message.isIntact else { throw damaged("checksum mismatch") }
        let wire: WireCheckMessage
        do {
            try WireShape.check.checkFields(message.payload)
            wire = try WireCheckMessage(serializedBytes: message.payload)
        } catch {
            throw damaged("it can't be decoded")
        }
        guard wire.format <= version else {
            throw StoreError(
                .newerVersion, "The check has format \(wire.format); this program supports formats up to \(version).",
                hint: "Update Martlet. Nothing was changed.")
        }
        guard wire.format > 0, let sender = NodeID(bytes: wire.header.maker), let check = NodeID(bytes: wire.check)
        else { throw damaged("it has no valid sender") }
        // The signature covers this header, so the payload must name the same sender.
        if let origin = message.header(WireHeader.origin), NodeID(text: origin) != sender {
            throw damaged("its header names another sender")
        }
        let vector: VersionVector
        do throws(StoreError) {
            try wire.header.checkBounds()
            vector = try VersionVector(wire.header.origins)
        } catch {
            throw damaged("the state of its sender is invalid: \(error.message)")
        }
        guard wire.step <= InputBounds.maxCheckStep, InputBounds.time(wire.ignored) != nil else {
            throw damaged("its step or its clock is out of range")
        }
        let entities = wire.digests + wire.covered
        let ranges = entities.reduce(0) { $0 + $1.ranges.count }
        guard ranges <= InputBounds.maxCheckRanges, entities.count <= InputBounds.maxCheckRanges else {
            throw damaged("it has too many ranges: \(ranges), of \(entities.count) tables")
        }
        guard entities.allSatisfy({ InputBounds.isName($0.name) }) else { throw damaged("a table's name is too long") }
        // The receiver expects each table at most once.
        for part in [wire.digests, wire.covered] where Set(part.map(\.name)).count < part.count {
            throw damaged("it has a table twice")
        }
        return AntiEntropyMessage(
            wire: wire, sender: sender, check: check, vector: vector, byteCount: message.payload.count)
    }

    private static func damaged(_ what: String) -> StoreError {
        StoreError(
            .corrupt, "The check message is invalid: \(what).", hint: "Wait for the next check. Nothing was changed.")
    }
}

/// A message of the topic for anti-entropy checks.
package struct AntiEntropyMessage {
    /// The name of the header that holds the ID of the check. Part of the wire format.
    package static let header = "martlet-check"

    package var wire: WireCheckMessage
    package var sender: NodeID
    package var check: NodeID
    /// The transactions that the sender had merged.
    package var vector: VersionVector
    /// The size of the payload in bytes.
    package var byteCount: Int

    package init(wire: WireCheckMessage, sender: NodeID, check: NodeID, vector: VersionVector, byteCount: Int) {
        self.wire = wire
        self.sender = sender
        self.check = check
        self.vector = vector
        self.byteCount = byteCount
    }

    package var step: Int { Int(wire.step) }
}
