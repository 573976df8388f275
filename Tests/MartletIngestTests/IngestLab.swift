import Foundation
import MartletBus
import MartletIngest
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Nodes on one topic, which ingest further topics in memory.
struct IngestLab {
    static let schema = """
        CREATE TABLE product(id INTEGER PRIMARY KEY NOT NULL, name TEXT, price REAL, stock INTEGER);
        CREATE TABLE country(code TEXT PRIMARY KEY NOT NULL, name TEXT) WITHOUT ROWID;
        """

    let directory: TemporaryDirectory
    let bus: InMemoryBus
    let schema: String

    init(_ schema: String = schema) throws {
        directory = try TemporaryDirectory()
        bus = InMemoryBus(topic: "t")
        self.schema = schema
    }

    func node(
        _ name: String, clock: TestClock = TestClock(), identities: [String: [String]] = ["product": ["id"]],
        snapshots: (any Bus)? = nil, configure: (inout SyncConfiguration) -> Void = { _ in }
    ) throws -> TestNode {
        var request = AttachRequest()
        request.identities = identities
        return try TestNode(
            name, bus: bus, snapshots: snapshots, directory: directory, schema: schema, attach: request, clock: clock,
            configure: configure)
    }

    func topic(_ name: String = "pg.public.product", partitions: Int = 1) -> SourceTopic {
        SourceTopic(InMemoryBus(topic: name, partitionCount: partitions, beside: bus))
    }

    func ingester(
        _ node: TestNode, _ mappings: [TableMapping] = [TableMapping(topic: "pg.public.product", table: "product")],
        mayBegin: @escaping @Sendable () -> Bool = { true }
    ) throws -> Ingester {
        var configuration = IngestConfiguration()
        configuration.topics = mappings
        return try Ingester(
            engine: node.engine, topics: MemoryTopics(first: bus), configuration: configuration, mayBegin: mayBegin)
    }

    /// Ingests everything that the topics have, by a run that then ends.
    @discardableResult
    func ingest(
        _ node: TestNode, _ mappings: [TableMapping] = [TableMapping(topic: "pg.public.product", table: "product")]
    ) throws -> Int {
        try ingester(node, mappings).runUntilCaughtUp()
    }

    /// Returns where the last record of a key is.
    func position(ofLastIn bus: InMemoryBus, key: String) throws -> PartitionPosition? {
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        let count = try consumer.partitionCount(timeout: .seconds(1))
        try consumer.assign((0..<Int32(count)).map { PartitionPosition(partition: $0, offset: 0) })
        let messages = try consumer.poll(maxCount: .max >> 1, timeout: .milliseconds(1)).messages
        return messages.last { $0.key == Array(key.utf8) }?.position
    }

    func places(_ node: TestNode) throws -> [String] {
        try node.store.ingestPlaces().map { "\($0.topic)/\($0.partition) \($0.next) \($0.problem ?? "")" }
    }
}

private struct MemoryTopics: IngestTopics {
    let first: InMemoryBus

    func bus(of topic: String) -> any Bus { InMemoryBus(topic: topic, beside: first) }
}

/// Writes records as Debezium's connector for PostgreSQL does, without schemas.
final class SourceTopic {
    let bus: InMemoryBus
    private let producer: any BusProducer
    /// The position in the source's log.
    private(set) var position: Int64 = 1000

    init(_ bus: InMemoryBus) {
        self.bus = bus
        guard let producer = try? bus.makeProducer(acknowledge: { _ in }) else { preconditionFailure("in memory") }
        self.producer = producer
    }

    deinit { producer.close() }

    /// Writes a record, at a time in milliseconds after which the clock goes on. Values are JSON.
    ///
    /// - Parameters:
    ///   - at: when the source made the change. Nil: now, later than everything before.
    ///   - lsn: the position. Nil: the next one.
    ///   - fields: the schema of the row, if the record has one.
    func send(
        _ operation: String, key: String, before: String? = nil, after: String? = nil, at time: Int64? = nil,
        lsn: Int64? = nil, fields: KeyValuePairs<String, String>? = nil
    ) throws {
        if time == nil { SQLiteClock.advance() }
        if lsn == nil { position += 1 }
        let lsn = lsn ?? position
        let milliseconds = time ?? SQLiteClock.milliseconds
        let value = """
            {"before":\(before ?? "null"),"after":\(after ?? "null"),"source":{"version":"3.0.0.Final",\
            "connector":"postgresql","name":"pg","ts_ms":\(milliseconds),"snapshot":"\(operation == "r")","db":"shop",\
            "sequence":"[\\"\(lsn - 1)\\",\\"\(lsn)\\"]","schema":"public","table":"product","txId":7,"lsn":\(lsn)},\
            "transaction":null,"op":"\(operation)","ts_ms":\(milliseconds + 3)}
            """
        guard let fields else { return try send(key, value) }
        try send(key, RecordText.withSchema(RecordText.envelopeSchema(fields), value))
    }

    func send(_ key: String, _ value: String?) throws {
        let key = Array(key.utf8)
        let message =
            value.map { OutgoingMessage(key: key, headers: [], payload: Array($0.utf8), tag: 0) }
            ?? OutgoingMessage(nullFor: key, headers: [], tag: 0)
        try producer.send(message)
    }

    /// A delete, and the null record after it.
    func sendDelete(key: String, before: String? = nil) throws {
        try send("d", key: key, before: before ?? key)
        try send(key, nil)
    }
}
