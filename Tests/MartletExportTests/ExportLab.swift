import Foundation
import GRDB
import MartletExport
import MartletStore
import MartletSync
import MartletTestSupport
import Synchronization

/// Nodes on one topic, whose changes are exported to further topics in memory.
struct ExportLab {
    static let schema = """
        CREATE TABLE trip(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, budget REAL);
        CREATE TABLE stop(id INTEGER PRIMARY KEY, trip INTEGER NOT NULL REFERENCES trip(id) ON DELETE CASCADE,
          place TEXT);
        CREATE TABLE setting(key TEXT PRIMARY KEY NOT NULL, value);
        CREATE TABLE pair(a TEXT NOT NULL, b INTEGER NOT NULL, data BLOB, PRIMARY KEY(a, b)) WITHOUT ROWID;
        """

    let directory: TemporaryDirectory
    let bus: InMemoryBus
    let topics: MemoryTopics
    let schema: String

    init(_ schema: String = schema) throws {
        directory = try TemporaryDirectory()
        bus = InMemoryBus(topic: "t")
        topics = MemoryTopics(bus)
        self.schema = schema
    }

    func node(
        _ name: String, attach request: AttachRequest = .init(), clock: TestClock = TestClock(),
        configure: (inout SyncConfiguration) -> Void = { _ in }
    ) throws -> TestNode {
        try TestNode(
            name, bus: bus, directory: directory, schema: schema, attach: request, clock: clock, configure: configure)
    }

    func exporter(
        _ node: TestNode, configure: (inout ExportConfiguration) -> Void = { _ in }
    ) throws -> Exporter {
        var configuration = ExportConfiguration()
        configuration.prefix = "x"
        configure(&configuration)
        return try Exporter(engine: node.engine, topics: topics, configuration: configuration, version: "1.2.3")
    }

    /// Exports everything that a node has, by a run that then ends.
    @discardableResult
    func export(_ node: TestNode, configure: (inout ExportConfiguration) -> Void = { _ in }) throws -> Int {
        try exporter(node, configure: configure).runUntilCaughtUp()
    }

    /// The messages of a topic, partition by partition. None if it does not exist.
    func messages(_ topic: String) throws -> [IncomingMessage] {
        guard bus.topicNames.contains(topic) else { return [] }
        let consumer = try InMemoryBus(topic: topic, beside: bus).makeConsumer()
        defer { consumer.close() }
        let count = try consumer.partitionCount(timeout: .seconds(1))
        try consumer.assign((0..<Int32(count)).map { PartitionPosition(partition: $0, offset: 0) })
        return try consumer.poll(maxCount: .max >> 1, timeout: .milliseconds(1)).messages
    }

    /// The records of a topic as `key = value`, with stand-ins for what differs from run to run.
    func records(_ topic: String, _ node: TestNode) throws -> [String] {
        try messages(topic).map { message in
            let value = message.isNull ? "null" : String(decoding: message.payload, as: UTF8.self)
            return Self.plain("\(String(decoding: message.key, as: UTF8.self)) = \(value)", node)
        }
    }

    /// Times become `TIME`, stamps `HLC`, the node's ID `NODE`, and other UUIDs `UUID`.
    static func plain(_ text: String, _ node: TestNode) -> String {
        let id = node.engine.node.description.lowercased()
        return text.replacing(id, with: "NODE")
            .replacing(#/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/#, with: "UUID")
            .replacing(#/"ts_ms":\d+/#, with: #""ts_ms":TIME"#)
            .replacing(#/"hlc":\d+/#, with: #""hlc":HLC"#)
    }
}

/// Topics in memory. The test may let sending fail.
final class MemoryTopics: ExportTopics {
    /// How a record fails, and everything that is sent with the same producer after it.
    enum Failure: CaseIterable, Sendable {
        /// The broker never gets it.
        case lost
        /// The broker has it, and its acknowledgement is lost.
        case unacknowledged
    }

    private struct State {
        /// How many records are still sent before one fails.
        var left: Int?
        var failure = Failure.lost
        var sent = 0
        var hidesOffsets = false
        var queueBytes = Int.max
        /// Topics that somebody has deleted.
        var deleted: Set<String> = []
    }

    private let first: InMemoryBus
    private let state = Mutex(State())

    init(_ first: InMemoryBus) { self.first = first }

    /// The number of records that were sent to topics of tables and transactions.
    var sentCount: Int { state.withLock { $0.sent } }

    /// Lets a record fail after this many.
    func fail(after count: Int, _ failure: Failure) {
        state.withLock { ($0.left, $0.failure) = (count, failure) }
    }

    /// Lets acknowledgements say that the broker has a record, but not where, or lets them say it again.
    func hidesOffsets(_ hides: Bool) { state.withLock { $0.hidesOffsets = hides } }

    /// Lets producers have no more room than this at once.
    func limitQueue(bytes: Int) { state.withLock { $0.queueBytes = bytes } }

    /// Lets a topic be unknown until an exporter creates it again.
    func delete(_ topic: String) { state.withLock { _ = $0.deleted.insert(topic) } }

    fileprivate var queueBytes: Int { state.withLock { $0.queueBytes } }

    fileprivate func checkIsThere(_ topic: String) throws(BusError) {
        guard state.withLock({ !$0.deleted.contains(topic) }) else {
            throw BusError(.unknownTopic, "there is no topic \(topic)", isRetriable: false)
        }
    }

    fileprivate func known(_ acknowledgement: Acknowledgement) -> Acknowledgement {
        guard state.withLock({ $0.hidesOffsets }), case .success(var position) = acknowledgement.result else {
            return acknowledgement
        }
        position.offset = -1001
        return Acknowledgement(tag: acknowledgement.tag, result: .success(position))
    }

    func ensure(_ topic: ExportTopic) throws {
        let bus = InMemoryBus(topic: topic.name, partitionCount: topic.partitionCount, beside: first)
        if state.withLock({ $0.deleted.remove(topic.name) }) != nil { bus.wipe() }
    }

    func bus(of topic: String) throws -> any Bus { FailingBus(InMemoryBus(topic: topic, beside: first), self) }

    /// Returns how this record fails. Nil if it does not.
    fileprivate func next() -> Failure? {
        state.withLock { state in
            state.sent += 1
            guard let left = state.left else { return nil }
            guard left > 0 else {
                state.left = nil
                return state.failure
            }
            state.left = left - 1
            return nil
        }
    }
}

private struct FailingBus: ForwardingBus {
    let inner: InMemoryBus
    let topics: MemoryTopics

    init(_ inner: InMemoryBus, _ topics: MemoryTopics) {
        self.inner = inner
        self.topics = topics
    }

    func makeProducer(acknowledge: @escaping @Sendable (Acknowledgement) -> Void) throws(BusError) -> any BusProducer {
        try FailingProducer(inner, topics, acknowledge)
    }

    func makeConsumer() throws(BusError) -> any BusConsumer {
        FailingConsumer(try inner.makeConsumer(), inner.topic, topics)
    }
}

private final class FailingConsumer: ForwardingConsumer {
    let inner: any BusConsumer
    private let topic: String
    private let topics: MemoryTopics

    init(_ inner: any BusConsumer, _ topic: String, _ topics: MemoryTopics) {
        self.inner = inner
        self.topic = topic
        self.topics = topics
    }

    func partitionCount(timeout: Duration) throws(BusError) -> Int {
        try topics.checkIsThere(topic)
        return try inner.partitionCount(timeout: timeout)
    }

    func poll(maxCount: Int, timeout: Duration) throws(BusError) -> ConsumerBatch {
        do throws(BusError) {
            try topics.checkIsThere(topic)
        } catch {
            return ConsumerBatch(events: [.error(error)])
        }
        return try inner.poll(maxCount: maxCount, timeout: timeout)
    }
}

private final class FailingProducer: BusProducer {
    /// Which records fail although the broker has them.
    private final class Unacknowledged: Sendable {
        let tags = Mutex<Set<UInt64>>([])
    }

    private let inner: any BusProducer
    private let topics: MemoryTopics
    private let acknowledge: @Sendable (Acknowledgement) -> Void
    private let unacknowledged: Unacknowledged
    private let isBroken = Mutex(false)

    init(
        _ inner: InMemoryBus, _ topics: MemoryTopics, _ acknowledge: @escaping @Sendable (Acknowledgement) -> Void
    ) throws(BusError) {
        self.topics = topics
        self.acknowledge = acknowledge
        let failing = Unacknowledged()
        unacknowledged = failing
        self.inner = try inner.makeProducer { acknowledgement in
            let fails = failing.tags.withLock { $0.contains(acknowledgement.tag) }
            acknowledge(fails ? Self.failure(acknowledgement.tag) : topics.known(acknowledgement))
        }
    }

    func send(_ message: OutgoingMessage) throws(BusError) {
        guard message.payload.count <= topics.queueBytes else {
            throw BusError(.queueFull, "the queue is full", isRetriable: true)
        }
        // A record for the bus's own topic is one of the lease.
        let failure = message.topic == nil ? nil : topics.next()
        let isLost = isBroken.withLock { isBroken in
            defer { if failure != nil { isBroken = true } }
            return isBroken || failure == .lost
        }
        if isLost { return acknowledge(Self.failure(message.tag)) }
        if failure != nil { unacknowledged.tags.withLock { _ = $0.insert(message.tag) } }
        try inner.send(message)
    }

    private static func failure(_ tag: UInt64) -> Acknowledgement {
        Acknowledgement(tag: tag, result: .failure(BusError(.timedOut, "not acknowledged", isRetriable: true)))
    }

    func flush(timeout: Duration) -> Bool { inner.flush(timeout: timeout) }
    func close() { inner.close() }
}
