import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport

/// Nodes of one schema on one bus.
struct Lab {
    let directory: TemporaryDirectory
    let bus: InMemoryBus
    let schema: String
    let request: AttachRequest

    static let trips = """
        CREATE TABLE trip(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, budget REAL);
        CREATE TABLE stop(id INTEGER PRIMARY KEY, trip INTEGER NOT NULL REFERENCES trip(id) ON DELETE CASCADE,
          place TEXT);
        CREATE TABLE note(id INTEGER PRIMARY KEY, trip INTEGER REFERENCES trip(id) ON DELETE SET NULL, text TEXT);
        CREATE TABLE setting(key TEXT PRIMARY KEY NOT NULL, value);
        """

    init(_ schema: String = trips, partitions: Int = 1, request: AttachRequest = .init()) throws {
        directory = try TemporaryDirectory()
        bus = InMemoryBus(topic: "t", partitionCount: partitions)
        self.schema = schema
        self.request = request
    }

    func node(
        _ name: String, bus: (any Bus)? = nil, schema: String? = nil, clock: TestClock = TestClock(),
        files: StoreConfiguration = .impatient, configure: (inout SyncConfiguration) -> Void = { _ in }
    ) throws -> TestNode {
        try TestNode(
            name, bus: bus ?? self.bus, directory: directory, schema: schema ?? self.schema, attach: request,
            clock: clock, files: files, configure: configure)
    }

    /// All messages of the topic, partition by partition, without checksums, since tests change their contents.
    func messages() throws -> [IncomingMessage] {
        try MartletSyncTests.messages(bus).map { message in
            var message = message
            message.headers.removeAll { $0.name == "martlet-crc32" }
            return message
        }
    }

    /// Puts messages on the topic unchanged. The broker sets their timestamps.
    func send(_ messages: [IncomingMessage]) throws {
        let producer = try bus.makeProducer { _ in }
        for message in messages {
            try producer.send(
                OutgoingMessage(key: message.key, headers: message.headers, payload: message.payload, tag: 0))
        }
        producer.close()
    }

    /// Replaces the messages of the topic, like a broker that was restored from a backup.
    func rewrite(_ change: ([IncomingMessage]) -> [IncomingMessage]) throws {
        let kept = change(try messages())
        bus.wipe()
        try send(kept)
    }
}

func messages(_ bus: some Bus) throws -> [IncomingMessage] {
    let consumer = try bus.makeConsumer()
    defer { consumer.close() }
    let count = try consumer.partitionCount(timeout: .seconds(1))
    try consumer.assign(
        (0..<Int32(count)).map { partition in
            PartitionPosition(
                partition: partition, offset: try consumer.watermarks(partition: partition, timeout: .seconds(1)).low)
        })
    return try consumer.poll(maxCount: .max >> 1, timeout: .milliseconds(1)).messages
}

extension TestNode {
    /// The number of transactions in the node's outbox.
    func outboxCount() throws -> Int { try outbox().count }

    /// The values that merging overruled, as `kind|value`, oldest first.
    func conflicts() throws -> [String] {
        try store.conflicts().map { conflict in
            let value =
                switch conflict.value {
                case .null: "NULL"
                case .text(let text): text
                default: conflict.value.text
                }
            return "\(conflict.kind.rawValue)|\(value)"
        }
    }

    /// The keys of the settings.
    func keys() throws -> [String] { try rows("SELECT key FROM setting ORDER BY key") }

    /// The reasons for which rows are pending.
    func parked() throws -> [String] { try pendingRows().map(\.reason.rawValue) }

    /// Applies messages as if the topic had delivered them in this order, from a partition of their own.
    @discardableResult
    func receive(_ messages: [IncomingMessage], partition: Int32 = 9) throws -> ApplyReport {
        let next = try engine.offsets(topic: "direct").first { $0.partition == partition }?.offset ?? 0
        return try engine.apply(
            messages.enumerated().map { index, message in
                var message = message
                message.position = PartitionPosition(partition: partition, offset: next + Int64(index))
                return message
            }, topic: "direct")
    }
}

extension IncomingMessage {
    /// The message with another text in its payload, which is JSON.
    func replacing(_ text: String, with other: String) -> IncomingMessage {
        var message = self
        message.payload = Array(String(decoding: payload, as: UTF8.self).replacing(text, with: other).utf8)
        return message
    }
}
