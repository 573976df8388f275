import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Nodes of one schema on one bus, with a second bus for snapshots.
struct SnapshotLab {
    let directory: TemporaryDirectory
    let bus: InMemoryBus
    let snapshots: InMemoryBus
    let schema: String
    let request: AttachRequest
    let partitionCount: Int

    init(_ schema: String = Lab.trips, partitions: Int = 2, request: AttachRequest = .init()) throws {
        directory = try TemporaryDirectory()
        bus = InMemoryBus(topic: "t", partitionCount: partitions)
        snapshots = InMemoryBus(topic: SnapshotTopic.name(of: "t"), partitionCount: partitions)
        self.schema = schema
        partitionCount = partitions
        self.request = request
    }

    func node(
        _ name: String, schema: String? = nil, attach: AttachRequest? = nil, snapshots: (any Bus)? = nil,
        clock: TestClock = TestClock(), configure: (inout SyncConfiguration) -> Void = { _ in }
    ) throws -> TestNode {
        try TestNode(
            name, bus: bus, snapshots: snapshots ?? self.snapshots, directory: directory, schema: schema ?? self.schema,
            attach: attach ?? request, clock: clock, configure: configure)
    }

    /// Drops all messages of the topic, as retention does after some time.
    func prune() throws {
        for partition in 0..<Int32(partitionCount) { bus.truncate(partition: partition, upTo: try high(partition)) }
    }

    /// The end of a partition of the topic.
    func high(_ partition: Int32) throws -> Int64 {
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        return try consumer.watermarks(partition: partition, timeout: .seconds(1)).high
    }

    /// Replaces the messages of the snapshot topic.
    func rewrite(_ change: ([IncomingMessage]) throws -> [IncomingMessage]) throws {
        let kept = try change(messages(snapshots))
        snapshots.wipe()
        let producer = try snapshots.makeProducer { _ in }
        for message in kept {
            try producer.send(
                OutgoingMessage(key: message.key, headers: message.headers, payload: message.payload, tag: 0))
        }
        producer.close()
    }
}

extension IncomingMessage {
    func text(_ header: String) -> String? { self.header(header).map { String(decoding: $0, as: UTF8.self) } }
}

extension TestNode {
    @discardableResult
    func makeSnapshot() throws -> SnapshotInfo { try #require(snapshots).make() }

    /// Everything that sync stores about rows and origins, in a form that is equal on nodes with equal knowledge.
    func knowledge() throws -> [String] {
        let origins = try status().origins
        let applied = origins.map { "origin \($0.node) \($0.applied)" }.sorted()
        let gaps = origins.flatMap { origin in origin.gaps.map { "gap \(origin.node) \($0)" } }.sorted()
        let tombstones = try tombstones().map { "tombstone \($0)" }
        return try applied + gaps + tombstones + waiting() + pendingInsertionTimes()
    }

    /// When each pending row was inserted, as far as that is known.
    private func pendingInsertionTimes() throws -> [String] {
        try withContext { db, context in
            let pending = PendingRows(db: db, context: context)
            return try pending.all().compactMap { row -> String? in
                guard let table = context.catalog[row.entity].map(context.table) else { return nil }
                let inserted = try pending.load(table, row.identity)?.clocks.inserted?.time
                return "inserted \(row) \(inserted.map { "\($0)" } ?? "never")"
            }.sorted()
        }
    }
}

/// Expects that the nodes hold the same data, with nothing missing.
func expectSame(_ nodes: [TestNode], sourceLocation: SourceLocation = #_sourceLocation) throws {
    let digest = try StoreDigest.compute(nodes[0].store)
    for node in nodes {
        #expect(
            try StoreDigest.compute(node.store).entities == digest.entities, "\(node.name)",
            sourceLocation: sourceLocation)
        #expect(
            try node.gaps() == [], "\(node.name)", sourceLocation: sourceLocation
        )
        #expect(try node.rows("PRAGMA foreign_key_check") == [], "\(node.name)", sourceLocation: sourceLocation)
        #expect(try node.store.audit().isClean, "\(node.name)", sourceLocation: sourceLocation)
    }
}
