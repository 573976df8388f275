import Foundation
import MartletStore
import MartletSync
import MartletTestSupport
import Synchronization
import Testing

/// A key ring that changes when a test says so.
final class TestKeys: KeySource {
    private let state: Mutex<String>

    /// - Parameter ids: the first one is current.
    init(_ ids: String...) throws {
        state = Mutex(try ids.reduce("") { try KeyRing.adding($1, makesCurrent: false, to: $0) })
    }

    private init(text: String) { state = Mutex(text) }

    /// A copy of the keys that changes independently.
    func copy() -> TestKeys { TestKeys(text: state.withLock { $0 }) }

    func ring() throws -> KeyRing { try KeyRing(parsing: state.withLock { $0 }) }

    func add(_ id: String) throws {
        try state.withLock { $0 = try KeyRing.adding(id, makesCurrent: true, to: $0) }
    }

    /// Takes over the keys of another ring.
    func become(_ other: TestKeys) {
        let text = other.state.withLock { $0 }
        state.withLock { $0 = text }
    }

    func spoil() { state.withLock { $0 = "no key ring" } }
}

extension MessageSecurity {
    /// Seals messages with these keys.
    init(keys: TestKeys?, signingKey: NodeSigningKey? = nil, _ rules: (inout SecurityConfiguration) -> Void = { _ in })
    {
        var configuration = SecurityConfiguration()
        rules(&configuration)
        self.init(configuration, keys: keys, signingKey: signingKey)
    }
}

extension Lab {
    func node(_ name: String, _ security: MessageSecurity, configure: (inout SyncConfiguration) -> Void = { _ in })
        throws -> TestNode
    {
        try TestNode(
            name, bus: bus, directory: directory, schema: schema, attach: request, security: security,
            configure: configure)
    }
}

extension IncomingMessage {
    mutating func set(_ name: String, _ value: String?) {
        headers.removeAll { $0.name == name }
        if let value { headers.append(MessageHeader(name, value)) }
    }

    /// The message with the checksum of its payload, which an attacker would also set.
    func summed() -> IncomingMessage {
        var message = self
        var sum: UInt32 = .max
        for byte in payload {
            sum ^= UInt32(byte)
            for _ in 0..<8 { sum = sum & 1 == 1 ? 0xedb8_8320 ^ sum >> 1 : sum >> 1 }
        }
        let digits = String(~sum, radix: 16)
        message.set("martlet-crc32", String(repeating: "0", count: 8 - digits.count) + digits)
        return message
    }

    /// All bytes of the message that the broker sees.
    var visible: [UInt8] { key + headers.flatMap { Array($0.name.utf8) + $0.value } + payload }
}

extension [UInt8] {
    func contains(_ text: String) -> Bool {
        String(decoding: self, as: UTF8.self).contains(text)
    }
}

extension TestNode {
    /// Applies messages as if they came from a partition of the topic that contains nothing else.
    @discardableResult
    func deliver(_ messages: [IncomingMessage], partition: Int32 = 9, topic: String = "t") throws -> ApplyReport {
        let next = try engine.offsets(topic: topic).first { $0.partition == partition }?.offset ?? 0
        return try engine.apply(
            messages.enumerated().map { index, message in
                var message = message
                message.position = PartitionPosition(partition: partition, offset: next + Int64(index))
                return message
            }, topic: topic)
    }

    func reasons() throws -> [String] { try store.quarantined().map(\.reason) }

    /// What the node knows of other nodes' sequences.
    func sequences() throws -> [String] {
        let applied = try status().origins.map(\.applied).sorted().map { "\($0)" }
        let missing = try gaps().sorted { $0.lowerBound < $1.lowerBound }
        return applied + missing.map { "gap|\($0.lowerBound)|\($0.upperBound)" }
    }
}
