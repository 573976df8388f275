package import Foundation
import GRDB
public import Logging
public import MartletBus
import MartletCore
public import MartletEngine
import MartletMerge
import MartletReplica
import MartletStore
import MartletWire
import Synchronization

/// Compares this node with the others, over a topic of its own (`<topic>.check`), and repairs what differs.
///
/// Runs on a thread that the caller provides; see ``run()``.
public final class AntiEntropy: Sendable {
    let engine: SyncEngine
    let bus: any Bus
    /// The transactions' topic.
    let topic: String
    public let configuration: AntiEntropyConfiguration
    let prepare: @Sendable () throws -> Void
    /// Called when another node waits for a snapshot.
    let snapshotWanted: @Sendable () -> Void
    let log: Logger
    let limit: MessageLimit
    public let stopSignal = WakeSignal()
    private let progress = Mutex(AntiEntropyProgress())
    // Safe because it is only touched by the thread that runs `step`, which is the one that may call `begin` and
    // `report`.
    nonisolated(unsafe) var state: State

    struct State {
        var consumer: (any BusConsumer)?
        /// The number of partitions that the consumer reads.
        var partitionCount: PartitionCount?
        var waiting = WaitingMessages()
        /// The digests that were sent for ranges in each check. What a node with the same state has sent need not be
        /// sent again.
        var answered: [NodeID: Answered] = [:]
        var checks: [NodeID] = []
        /// The last promise of each node, until it is in the store.
        var unnoted: [NodeID: WatermarkReport] = [:]
        var schedule: AntiEntropySchedule
        /// When each of the other nodes was last heard of.
        var heard: [NodeID: ContinuousClock.Instant] = [:]
        /// The last request for reports of other nodes that this node has passed on, or found at its start.
        var asked: Int64?
        var backoff = Backoff(from: .milliseconds(100), to: .seconds(60))
        /// Open while there are messages to answer, and for a while afterwards: SQLite reads the whole schema for each
        /// connection.
        var reader: DatabaseQueue?
        /// When it was last used.
        var readAt: ContinuousClock.Instant
    }

    struct Answered {
        struct Key: Hashable {
            var entity: String
            var range: KeyRange
        }
        var sums: [Key: [(step: Int, sum: RangeSum)]] = [:]
    }

    /// The most digests to which answers are remembered, for one range.
    static let maxAnswers = 16
    /// The most nodes that are remembered as heard of: more than ever take part.
    static let maxHeard = 10_000

    /// No answer has a higher step: an unfinished check is continued by the next one.
    static let maxStep = 14
    /// How long a connection for reading is kept after its last use: other nodes answer within seconds.
    static let readerPatience = Duration.seconds(10)
    /// How often the topic is asked for its number of partitions.
    static let countInterval = Duration.seconds(300)
    /// How long after it was last heard of a node's word is waited for where one stamp has two values.
    static let presence = Delivery.presence

    /// - Parameters:
    ///   - bus: the bus of the topic for checks, ``name(of:)``.
    ///   - topic: the name of the transactions' topic.
    ///   - snapshotWanted: called when another node waits for a snapshot, on the thread that runs ``run()``.
    ///   - prepare: called before the topic for checks is first used; creates it if it is missing.
    public init(
        engine: SyncEngine, bus: any Bus, topic: String, configuration: AntiEntropyConfiguration = .init(),
        log: Logger = Logger(label: "martlet.checks"), snapshotWanted: @escaping @Sendable () -> Void = {},
        prepare: @escaping @Sendable () throws -> Void = {}
    ) {
        self.snapshotWanted = snapshotWanted
        self.engine = engine
        self.bus = bus
        self.topic = topic
        self.configuration = configuration
        self.prepare = prepare
        self.log = log
        limit = MessageLimit(bus, configured: engine.configuration.maxMessageBytes)
        let now = engine.instant()
        state = State(schedule: AntiEntropySchedule(interval: configuration.interval, at: now), readAt: now)
    }

    /// Returns the name of the topic for checks of a topic.
    public static func name(of topic: String) -> String { SideTopic.checks(of: topic) }

    /// The counts so far. Callable from any thread.
    public var currentProgress: AntiEntropyProgress { progress.withLock { $0 } }

    func note(_ change: (inout AntiEntropyProgress) -> Void) { progress.withLock { change(&$0) } }

    /// Reads and answers until ``stopSignal`` is stopped. Blocks the calling thread.
    public func run() {
        guard configuration.interval > .zero else { return }
        // A node that starts has more urgent requests for the broker.
        stopSignal.wait(timeout: min(.seconds(5), configuration.interval / 20))
        while !stopSignal.isStopped {
            step(timeout: .milliseconds(500))
            if state.backoff.delay > .zero { stopSignal.wait(timeout: state.backoff.delay) }
        }
        disconnect()
    }

    /// Reads messages of other nodes, answers them, and begins a check if one is due.
    ///
    /// - Returns: false if an error interrupted it.
    @discardableResult
    public func step(timeout: Duration) -> Bool {
        do {
            let consumer = try consumerOfAllPartitions()
            let batch = try consumer.poll(maxCount: 100, timeout: timeout)
            engine.messageGuard.refresh()
            if engine.instant() - state.readAt > Self.readerPatience { state.reader = nil }
            for message in batch.messages { take(message) }
            for event in batch.events { try handle(event) }
            try noteMembers()
            try answerWaiting()
            let now = engine.instant()
            if state.waiting.isEmpty, state.schedule.isCheckDue(at: now, fraction: engine.node.fraction) { try begin() }
            if state.schedule.isReportDue(at: now, isUrgent: engine.late.areWaiting) { try report() }
            if configuration.interval > .zero { try requestSnapshot() }
            try ask()
            state.backoff.reset()
            return true
        } catch {
            log.info("Checks interrupted; will retry", metadata: ["error": "\(error)"])
            disconnect()
            state.backoff.fail()
            return false
        }
    }

    /// Sends this node's promise: which transactions it has, and its clock. Before that, advances the clock, and
    /// collects the tombstones of rows that no node can bring back.
    ///
    /// - Throws: ``/MartletBus/BusError`` when the broker does not take it.
    package func report(_ id: UUID = UUID()) throws {
        _ = try connect()
        try TombstoneCollection(engine).advanceClock(
            horizon: configuration.tombstoneHorizon ?? AntiEntropyConfiguration.assumedHorizon)
        if let horizon = configuration.tombstoneHorizon {
            let count = try TombstoneCollection(engine).collect(horizon: horizon) { stopSignal.isStopped }
            if count > 0 { log.info("Tombstones collected", metadata: ["rows": "\(count)"]) }
        }
        let tells = engine.late.take()
        do {
            try send(makeReport(id))
        } catch {
            // It is still due.
            if tells { engine.late.note() }
            throw error
        }
        state.schedule.noteReported(at: engine.instant())
    }

    /// Also while a snapshot is loaded in part: the store then has all transactions that it claims to have, and more
    /// rows, but no rows are compared.
    private func makeReport(_ id: UUID) throws -> WireCheckMessage {
        try readStamped { try AntiEntropyReader($0, engine: engine, topic: topic).report(NodeID(id)) }
    }

    /// Requests a snapshot from other nodes, if this node waits for one.
    package func requestSnapshot(_ id: UUID = UUID()) throws {
        guard state.schedule.isRequestDue(at: engine.instant()) else { return }
        state.schedule.noteLooked(at: engine.instant(), isRequested: false)
        guard try engine.needsSnapshot() else { return }
        var message = try makeReport(id)
        message.wantsSnapshot = true
        try send(message)
        state.schedule.noteLooked(at: engine.instant(), isRequested: true)
        log.info("Snapshot requested from other nodes")
    }

    /// Asks other nodes to report which of this node's transactions they have, if a caller waits for that.
    package func ask(_ id: UUID = UUID()) throws {
        let wanted = try Delivery.answerWanted(engine.session)
        guard wanted != state.asked else { return }
        // A caller that asked before this agent started, and still waits, asks again.
        guard state.asked != nil else { return state.asked = wanted }
        var message = try makeReport(id)
        message.wantsAnswer = true
        try send(message)
        state.asked = wanted
    }

    /// Stores the promises of other nodes.
    private func noteMembers() throws {
        for (node, report) in state.unnoted {
            try TombstoneCollection(engine).noteMember(node, report)
            state.unnoted[node] = nil
        }
    }

    /// Begins a check now: sends the digest of the rows of each table. Other nodes answer if theirs differ.
    ///
    /// - Returns: false if this node has to send or read transactions first, or the store can't be compared now.
    /// - Throws: ``/MartletBus/BusError`` when the broker does not take it.
    @discardableResult
    public func begin() throws -> Bool { try begin(UUID()) }

    /// The same, under an ID that a simulation chooses.
    @discardableResult
    package func begin(_ id: UUID) throws -> Bool {
        _ = try connect()
        let message: WireCheckMessage? = try readStamped { db in
            guard try AntiEntropyReader.isReady(db), try AntiEntropyReader.isCaughtUp(db, topic: topic) else {
                return nil
            }
            return try AntiEntropyReader(db, engine: engine, topic: topic).beginning(NodeID(id))
        }
        // Before it is sent: reading all rows again at once would help no more than the first time.
        state.schedule.noteTried(at: engine.instant())
        guard let message else { return false }
        try send(message)
        state.schedule.noteBegun()
        note { $0.begun += 1 }
        return true
    }

    func readStamped<T>(_ body: (Database) throws -> T) throws -> T {
        let reader = try state.reader ?? engine.session.mapErrors { try engine.session.reader() }
        state.reader = reader
        state.readAt = engine.instant()
        return try engine.session.readStamped(on: reader, body)
    }

    // MARK: The topic

    package func connect() throws -> any BusConsumer {
        if let consumer = state.consumer { return consumer }
        try prepare()
        let consumer = try bus.makeConsumer()
        let count = try consumer.partitionCount(timeout: .seconds(5))
        // Earlier messages are of no use any more.
        try consumer.assign(
            (0..<Int32(count)).map { partition in
                PartitionPosition(
                    partition: partition,
                    offset: try consumer.watermarks(partition: partition, timeout: .seconds(5)).high)
            })
        state.consumer = consumer
        state.partitionCount = PartitionCount(count, at: engine.instant())
        return consumer
    }

    /// Connects again if the topic has another number of partitions by now: the messages of some nodes go to new ones.
    private func consumerOfAllPartitions() throws -> any BusConsumer {
        let consumer = try connect()
        let hasChanged = try state.partitionCount?.hasChanged(
            consumer, every: Self.countInterval, timeout: .seconds(5), at: engine.instant())
        guard hasChanged == true else { return consumer }
        disconnect()
        return try connect()
    }

    private func disconnect() {
        state.consumer?.close()
        state.consumer = nil
        state.reader = nil
    }

    private func handle(_ event: ConsumerEvent) throws {
        switch event {
        case .endOfPartition: break
        case .offsetOutOfRange, .disconnected: disconnect()
        case .error(let error): if !error.isRetriable { throw error }
        }
    }

    func send(_ message: WireCheckMessage) throws {
        let sender = try SnapshotSender(
            bus, limit, maxInFlightBytes: engine.configuration.maxInFlightBytes
        ) { [stopSignal] in stopSignal.isStopped }
        engine.messageGuard.refresh()
        try sender.send(
            try engine.messageGuard.seal(try AntiEntropyFormat.message(message), topic: bus.topic, origin: engine.node))
        try sender.finish()
        remember(
            AntiEntropyMessage(
                wire: message, sender: engine.node, check: NodeID(bytes: message.check) ?? .none,
                vector: VersionVector(), byteCount: 0))
        note { $0.sent += 1 }
    }
}

/// What the checks have done since the start.
public struct AntiEntropyProgress: Sendable, Equatable {
    /// Checks that this node began.
    public var begun = 0
    /// Messages that this node sent.
    public var sent = 0
    /// Checks of other nodes in which this node found no difference.
    public var agreed = 0
    /// Rows and columns that should have been the same, and were not.
    public var found = 0
    /// Those of them that were repaired.
    public var repaired = 0
    @available(*, deprecated, renamed: "repaired")
    public var mended: Int {
        get { repaired }
        set { repaired = newValue }
    }
    /// Messages that could not be verified, decoded or merged.
    public var ignored = 0

    package init(begun: Int = 0, sent: Int = 0, agreed: Int = 0, found: Int = 0, repaired: Int = 0, ignored: Int = 0) {
        self.begun = begun
        self.sent = sent
        self.agreed = agreed
        self.found = found
        self.repaired = repaired
        self.ignored = ignored
    }
}
