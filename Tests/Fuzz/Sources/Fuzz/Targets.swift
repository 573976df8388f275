import Foundation
import GRDB
import Logging
import SwiftProtobuf

// Decoders are internal to the package. Debug builds make them accessible to the package of the fuzzer.
@testable import MartletAgent
@testable import MartletAntiEntropy
@testable import MartletBootstrap
@testable import MartletBus
@testable import MartletCore
@testable import MartletEngine
@testable import MartletStore
@testable import MartletWire

/// An entry point for untrusted bytes. A thrown error is a valid answer; a trap is a finding.
protocol FuzzTarget {
    func run(_ bytes: [UInt8])
}

private let silence = Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() }

enum FuzzTargets {
    static let names = ["transaction", "messages", "snapshot", "check", "hostile", "token", "configuration"]

    /// - Returns: nil if there is no target of that name.
    static func make(_ name: String) throws -> (any FuzzTarget)? {
        switch name {
        case "transaction": TransactionTarget()
        case "messages": try MessagesTarget()
        case "snapshot": try SnapshotTarget()
        case "check": try CheckTarget()
        case "hostile": HostileTarget()
        case "token": TokenTarget()
        case "configuration": ConfigurationTarget()
        default: nil
        }
    }
}

/// A payload, as Protobuf or JSON: decoded, its values and clocks read, and encoded again in both.
struct TransactionTarget: FuzzTarget {
    func run(_ bytes: [UInt8]) {
        _ = try? PublishedTransaction(decoding: bytes)
        let decoded = try? WireFormat.decode(bytes)
        compare(decoded, bytes)
        guard let transaction = decoded else { return }
        for encoding in WireEncoding.allCases {
            guard let encoded = try? WireFormat.encode(transaction, as: encoding) else { continue }
            // Invalid text and unknown fields can't be encoded as JSON.
            guard let again = try? WireFormat.decode(encoded) else {
                precondition(encoding == .json, "what was decoded can't be encoded and decoded again")
                continue
            }
            precondition(
                encoding == .json || (try? WireFormat.encode(again, as: encoding)) == encoded, "it changes on the way")
        }
        _ = transaction.clockedBy
        for change in transaction.changes { _ = try? StableID(wire: change.identity) }
    }

    /// Decoding a transaction change by change must give the same result. It may fail for input that decodes as a
    /// whole.
    private func compare(_ all: WireTransaction?, _ bytes: [UInt8]) {
        let read = try? EncodedChanges.read(bytes)
        let cut = try? EncodedChanges.read(.stored(CutPayload(bytes)), maxChangeBytes: EncodedChanges.anyChangeBytes)
        precondition(
            read?.header == cut?.header && read?.changes.count == cut?.changes.count
                && read?.changes.lastStep == cut?.changes.lastStep, "in pieces, it is another transaction")
        guard let (header, changes) = read else { return }
        var transaction = header
        do {
            try changes.forEach { transaction.changes.append(try $0.message()) }
        } catch {
            preconditionFailure("what was read once can't be read again")
        }
        func encoded(_ transaction: WireTransaction?) -> [UInt8]? {
            transaction.flatMap { try? WireFormat.encode($0, as: .protobuf) }
        }
        precondition(
            encoded(all) == encoded(transaction), "it is another transaction when its changes are decoded one by one")
    }
}

/// A payload in pieces of a few bytes.
private final class CutPayload: StoredPayload {
    private let bytes: [UInt8]
    // Safe because one thread uses it.
    nonisolated(unsafe) private var place = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var count: Int { bytes.count }

    func rewind() { place = 0 }

    func next() -> [UInt8]? {
        guard place < bytes.count else { return nil }
        let end = min(bytes.count, place + 1 + bytes.count % 61)
        defer { place = end }
        return Array(bytes[place..<end])
    }
}

/// Messages with headers, including chunks, applied to a real store: one message is a byte for its headers, two bytes
/// for its length, and its payload.
final class MessagesTarget: FuzzTarget {
    private let store: FuzzedStore
    private var offset: Int64 = 0
    private let origins = (0..<3).map { _ in UUID() }

    init() throws {
        store = try FuzzedStore(lifetime: 100)
    }

    func run(_ bytes: [UInt8]) {
        var rest = bytes[...]
        var messages: [IncomingMessage] = []
        while let kind = rest.popFirst(), let high = rest.popFirst(), let low = rest.popFirst(), messages.count < 20 {
            let payload = Array(rest.prefix(Int(high) << 8 | Int(low)))
            rest = rest.dropFirst(payload.count)
            messages.append(message(kind, payload))
        }
        do {
            let engine = try store.use()
            _ = try engine.apply(messages, topic: "t")
            _ = try engine.retryQuarantined()
        } catch {
            // No content of a message may cause an error of the store.
            fatalError("\(error)")
        }
    }

    private func message(_ kind: UInt8, _ payload: [UInt8]) -> IncomingMessage {
        var transaction = try? WireFormat.decode(payload)
        var payload = payload
        var headers: [MessageHeader] = []
        let origin = origins[Int(kind & 3) % 3]
        let sequence = Int(kind >> 4) + 1
        if kind & 8 == 0, transaction != nil {
            // Make the envelope match, so that the message is accepted.
            transaction?.origin = Data(NodeID(origin).bytes)
            transaction?.sequence = UInt64(sequence)
            payload = transaction.flatMap { try? WireFormat.encode($0, as: .protobuf) } ?? payload
        }
        headers.append(MessageHeader(WireHeader.origin, origin.uuidString))
        headers.append(MessageHeader(WireHeader.sequence, "\(sequence)"))
        if kind & 4 != 0 {
            headers.append(MessageHeader(WireHeader.chunk, String(decoding: payload.prefix(3), as: UTF8.self)))
            payload = Array(payload.dropFirst(3))
        }
        defer { offset += 1 }
        return IncomingMessage(
            position: PartitionPosition(partition: 0, offset: offset), key: [], headers: headers, payload: payload,
            timestamp: 0, isBrokerTimestamp: kind & 8 != 0)
    }
}

/// A snapshot, as parts of two bytes for the length and the contents. The target corrects checksums and names, so that
/// the code behind these checks is reached.
final class SnapshotTarget: FuzzTarget {
    private let store: FuzzedStore

    init() throws {
        store = try FuzzedStore(lifetime: 200)
    }

    func run(_ bytes: [UInt8]) {
        var rest = bytes[...]
        var parts: [[UInt8]] = []
        while let high = rest.popFirst(), let low = rest.popFirst(), parts.count < 20 {
            let part = Array(rest.prefix(Int(high) << 8 | Int(low)))
            rest = rest.dropFirst(part.count)
            parts.append(part)
        }
        guard !parts.isEmpty else { return }
        do {
            let engine = try store.use()
            let bus = InMemoryBus(topic: SnapshotTopic.name(of: "t"))
            let topic = SnapshotTopic(engine: engine, bus: bus, topic: "t", log: silence)
            try send(parts, on: bus)
            // A snapshot that can't be loaded is skipped: only a problem of the store throws.
            _ = try topic.load(partitionCount: 1)
        } catch {
            fatalError("\(error)")
        }
    }

    private func send(_ parts: [[UInt8]], on bus: InMemoryBus) throws {
        let id = NodeID(UUID())
        var framer = SnapshotFramer(snapshot: id, maker: NodeID(UUID()), slot: 0, maxBytes: 2000)
        let producer = try bus.makeProducer { _ in }
        var digest: [UInt8] = []
        var counts = (rows: 0, tombstones: 0)
        for (index, part) in parts.enumerated() {
            var part = part
            switch try? SnapshotFormat.decode(part) {
            case .header(var header):
                header.snapshot = Data(id.bytes)
                part = try SnapshotFormat.encode(.header(header))
            case .contents(let contents):
                counts.rows += contents.rows.count
                counts.tombstones += contents.tombstones.count
            case .trailer(var trailer):
                trailer.digest = Data(digest)
                trailer.parts = UInt64(index)
                trailer.rows = UInt64(counts.rows)
                trailer.tombstones = UInt64(counts.tombstones)
                part = try SnapshotFormat.encode(.trailer(trailer))
            case nil: break
            }
            digest = SnapshotFormat.digest(digest, part)
            for message in framer.messages(part, isLast: index == parts.count - 1) { try producer.send(message) }
        }
        producer.close()
    }
}

/// A check message for a node that has everything that the sender claims to have. The target corrects names and
/// checksums.
final class CheckTarget: FuzzTarget {
    private let store: FuzzedStore

    init() throws {
        store = try FuzzedStore(lifetime: 200)
    }

    func run(_ bytes: [UInt8]) {
        guard var wire = try? WireCheckMessage(serializedBytes: bytes) else { return }
        wire.header.maker = Data(NodeID(UUID()).bytes)
        wire.header.topic = "t"
        wire.header.origins = []
        wire.check = Data(NodeID(UUID()).bytes)
        do {
            let bus = InMemoryBus(topic: AntiEntropy.name(of: "t"))
            let antiEntropy = AntiEntropy(engine: try store.use(), bus: bus, topic: "t", log: silence)
            // The antiEntropy reads only messages that arrive after its start.
            precondition(antiEntropy.step(timeout: .zero))
            let producer = try bus.makeProducer { _ in }
            try producer.send(try AntiEntropyFormat.message(wire))
            producer.close()
            // No content of a message may block the next one.
            precondition(antiEntropy.step(timeout: .zero), "a check is held up")
        } catch {
            fatalError("\(error)")
        }
    }
}

/// Tokens and stable IDs, as text, JSON and bytes.
struct TokenTarget: FuzzTarget {
    func run(_ bytes: [UInt8]) {
        let text = String(decoding: bytes, as: UTF8.self)
        if let token = HistoryToken(text) {
            precondition(HistoryToken(token.description) == token, "a token that isn't what it says")
        }
        _ = try? JSONDecoder().decode(HistoryToken.self, from: Data(bytes))
        if let values = try? StableID(bytes: bytes).values() {
            // Lengths may be written with more bytes than they need.
            let again = StableID(values: values)
            precondition((try? again.values()) != nil, "an ID that can't be read back")
        }
        _ = StorePlace(text)
    }
}

/// Configuration files.
struct ConfigurationTarget: FuzzTarget {
    func run(_ bytes: [UInt8]) {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let configuration = try? AgentConfiguration(yaml: text, readFile: { _ in "secret" }) else { return }
        _ = configuration.validate()
    }
}
