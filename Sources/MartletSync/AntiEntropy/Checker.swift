public import Logging
package import Foundation
import GRDB
import MartletStore
import Synchronization

/// Compares this node with the others, over a topic of its own (`<topic>.check`), and mends what differs.
///
/// Runs on a thread of its caller's; see ``run()``.
public final class Checker: Sendable {
    let engine: SyncEngine
    let bus: any Bus
    /// The topic of the transactions.
    let topic: String
    public let configuration: CheckConfiguration
    let prepare: @Sendable () throws -> Void
    /// Told of it when another node waits for a snapshot.
    let snapshotWanted: @Sendable () -> Void
    let log: Logger
    let limit: MessageLimit
    public let stopSignal = WakeSignal()
    private let progress = Mutex(CheckProgress())
    // Safe because it is only touched by the thread that runs `step`, which is the one that may call `begin` and
    // `promise`.
    nonisolated(unsafe) var state: State

    struct State {
        var consumer: (any BusConsumer)?
        /// What waits until this node has all transactions that its sender had.
        var waiting: [(message: CheckMessage, since: ContinuousClock.Instant)] = []
        var waitingBytes: Int { waiting.reduce(0) { $0 + $1.message.byteCount } }
        /// What was said of ranges in each check: by whoever has the same as this node, so that it need not be said
        /// again.
        var said: [NodeID: Said] = [:]
        var checks: [NodeID] = []
        /// What was last heard of each node, until the store knows.
        var unnoted: [NodeID: Promise] = [:]
        /// When this node last said how its clock stands.
        var promisedAt: ContinuousClock.Instant
        /// When other nodes were last heard of.
        var heard: [NodeID: ContinuousClock.Instant] = [:]
        /// When to look next whether this node waits for a snapshot, and to say so.
        var wishesAt: ContinuousClock.Instant
        /// The last request for word of others that this node has passed on, or found at its start.
        var asked: Int64?
        /// Since when this node has agreed with another one, or has asked for it.
        var settled: ContinuousClock.Instant
        /// True where a check had more to say than its messages take.
        var isCut = false
        var retryDelay: Duration = .zero
        /// Open while there is something to answer, and for a while after it: SQLite reads the whole schema each time.
        var reader: DatabaseQueue?
        /// When it was last used.
        var readAt: ContinuousClock.Instant
    }

    struct Said {
        struct Key: Hashable {
            var entity: String
            var range: KeyRange
        }
        var sums: [Key: [(step: Int, sum: RangeSum)]] = [:]
    }

    /// How often it is remembered what was said of one range.
    static let maxSaid = 16
    /// More nodes than ever say something.
    static let maxHeard = 10_000

    /// No answer has a higher step: a check that comes to no end goes on with the next one.
    static let maxStep = 14
    /// How long after the start a node may begin a check.
    static let firstCheck = Duration.seconds(600)
    /// How long after the start a node says how its clock stands.
    static let firstPromise = Duration.seconds(30)
    /// How soon a node that waits for a snapshot notices, and how soon it says so again.
    static let wishDelay = (first: Duration.seconds(5), next: Duration.seconds(600))
    /// How long a message waits for the transactions that its sender had.
    static let patience = Duration.seconds(900)
    /// How long a connection for reading is kept: others answer within seconds.
    static let readerPatience = Duration.seconds(10)
    /// How long after it was last heard of a node's word is waited for where one stamp has two values.
    static let presence = Duration.seconds(7 * 86_400)

    /// - Parameters:
    ///   - bus: that of the checks, ``name(of:)``.
    ///   - topic: the name of the topic of the transactions.
    ///   - snapshotWanted: called when another node waits for a snapshot, on the thread that runs ``run()``.
    ///   - prepare: called before the topic for checks is used first; makes it where it is missing.
    public init(
        engine: SyncEngine, bus: any Bus, topic: String, configuration: CheckConfiguration = .init(),
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
        // Also where nodes are started anew every day.
        state = State(
            promisedAt: engine.instant() - max(.zero, configuration.interval - Self.firstPromise),
            wishesAt: engine.instant(),
            settled: engine.instant() - max(.zero, configuration.interval - Self.firstCheck),
            readAt: engine.instant())
    }

    /// What the topic for checks of a topic is called.
    public static func name(of topic: String) -> String { SideTopic.checks(of: topic) }

    /// What was done so far. From any thread.
    public var currentProgress: CheckProgress { progress.withLock { $0 } }

    func note(_ change: (inout CheckProgress) -> Void) { progress.withLock { change(&$0) } }

    /// Reads and answers until ``stopSignal`` is stopped. Blocks the calling thread.
    public func run() {
        guard configuration.interval > .zero else { return }
        // Whoever starts has more urgent things to ask of the broker.
        stopSignal.wait(timeout: min(.seconds(5), configuration.interval / 20))
        while !stopSignal.isStopped {
            step(timeout: .milliseconds(500))
            if state.retryDelay > .zero { stopSignal.wait(timeout: state.retryDelay) }
        }
        disconnect()
    }

    /// Reads what others say, answers, and begins a check where one is due.
    ///
    /// - Returns: false where something holds it up.
    @discardableResult
    public func step(timeout: Duration) -> Bool {
        do {
            let consumer = try connect()
            let batch = try consumer.poll(maxCount: 100, timeout: timeout)
            engine.messageGuard.refresh()
            if engine.instant() - state.readAt > Self.readerPatience { state.reader = nil }
            for message in batch.messages { take(message) }
            for event in batch.events { try handle(event) }
            try noteMembers()
            try answerWaiting()
            if isDue { try begin() }
            if isPromiseDue { try promise() }
            if configuration.interval > .zero { try wish() }
            try ask()
            state.retryDelay = .zero
            return true
        } catch {
            log.info("Checks interrupted; will retry", metadata: ["error": "\(error)"])
            disconnect()
            state.retryDelay = min(.seconds(60), max(.milliseconds(100), state.retryDelay * 2))
            return false
        }
    }

    private var isDue: Bool {
        guard state.waiting.isEmpty, configuration.interval > .zero else { return false }
        let wait = state.isCut ? .seconds(5) : configuration.interval * (1 + engine.node.fraction / 4)
        return engine.instant() - state.settled > wait
    }

    private var isPromiseDue: Bool {
        guard configuration.interval > .zero else { return false }
        // Who was refused should hear of it soon.
        if engine.hasRefused.exchange(false, ordering: .relaxed) { return true }
        return engine.instant() - state.promisedAt >= configuration.interval
    }

    /// Says how this node's clock stands, and forgets what was deleted so long ago that no node can bring it back.
    ///
    /// - Throws: ``/MartletBus/BusError`` when the broker does not take it.
    package func promise(_ id: UUID = UUID()) throws {
        _ = try connect()
        try engine.advanceClock(horizon: configuration.tombstoneHorizon ?? CheckConfiguration.assumedHorizon)
        if let horizon = configuration.tombstoneHorizon {
            let count = try engine.collectTombstones(horizon: horizon)
            if count > 0 { log.info("Tombstones collected", metadata: ["rows": "\(count)"]) }
        }
        let message = try makePromise(id)
        state.promisedAt = engine.instant()
        if let message { try send(message) }
    }

    /// - Returns: nil where the store can't be compared now.
    private func makePromise(_ id: UUID) throws -> WireCheckMessage? {
        try readRegistered { db in
            guard try CheckReader.isReady(db) else { return nil }
            return try CheckReader(db, engine: engine, topic: topic).promise(NodeID(id))
        }
    }

    /// Says that this node waits for a snapshot, where it does, so that one is made for it.
    package func wish(_ id: UUID = UUID()) throws {
        guard engine.instant() >= state.wishesAt else { return }
        state.wishesAt = engine.instant() + Self.wishDelay.first
        guard try !engine.wantedOffsets().isEmpty else { return }
        guard var message = try makePromise(id) else { return }
        message.wantsSnapshot = true
        try send(message)
        state.wishesAt = engine.instant() + Self.wishDelay.next
        log.info("Snapshot requested from other nodes")
    }

    /// Asks the others for word of what they have of this node's, where somebody waits for it.
    package func ask(_ id: UUID = UUID()) throws {
        let wanted = try engine.answerWanted()
        guard wanted != state.asked else { return }
        // Who asked before this agent was there, and still waits, asks again.
        guard state.asked != nil else { return state.asked = wanted }
        guard var message = try makePromise(id) else { return }
        message.wantsAnswer = true
        try send(message)
        state.asked = wanted
    }

    /// Keeps what others have promised.
    private func noteMembers() throws {
        for (node, promise) in state.unnoted {
            try engine.noteMember(node, promise)
            state.unnoted[node] = nil
        }
    }

    /// Begins a check now: tells what the rows of each table come to. Others answer where theirs come to something
    /// else.
    ///
    /// - Returns: false where this node has transactions to send or to read first, or the store can't be compared now.
    /// - Throws: ``/MartletBus/BusError`` when the broker does not take it.
    @discardableResult
    public func begin() throws -> Bool { try begin(UUID()) }

    /// The same, under a name that a simulation decides.
    @discardableResult
    package func begin(_ id: UUID) throws -> Bool {
        _ = try connect()
        let message: WireCheckMessage? = try readRegistered { db in
            guard try CheckReader.isReady(db), try CheckReader.isCaughtUp(db, topic: topic) else { return nil }
            return try CheckReader(db, engine: engine, topic: topic).beginning(NodeID(id))
        }
        // Not at once again: there may be more to send.
        state.settled = engine.instant()
        guard let message else { return false }
        state.isCut = false
        try send(message)
        note { $0.begun += 1 }
        return true
    }

    func readRegistered<T>(_ body: (Database) throws -> T) throws -> T {
        let reader = try state.reader ?? engine.mapErrors { try engine.reader() }
        state.reader = reader
        state.readAt = engine.instant()
        return try engine.readRegistered(on: reader, body)
    }

    // MARK: The topic

    func connect() throws -> any BusConsumer {
        if let consumer = state.consumer { return consumer }
        try prepare()
        let consumer = try bus.makeConsumer()
        let count = try consumer.partitionCount(timeout: .seconds(5))
        // What was said before is of no use any more.
        try consumer.assign(
            (0..<Int32(count)).map { partition in
                PartitionPosition(
                    partition: partition,
                    offset: try consumer.watermarks(partition: partition, timeout: .seconds(5)).high)
            })
        state.consumer = consumer
        return consumer
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
            try engine.messageGuard.seal(try CheckFormat.message(message), topic: bus.topic, origin: engine.node))
        try sender.finish()
        remember(
            CheckMessage(
                wire: message, sender: engine.node, check: NodeID(bytes: message.check) ?? .none,
                vector: VersionVector(), byteCount: 0))
        note { $0.sent += 1 }
    }
}

/// What checking came to since the start.
public struct CheckProgress: Sendable, Equatable {
    /// Checks that this node began.
    public var begun = 0
    /// Messages that it sent.
    public var sent = 0
    /// Checks of others that found the same here.
    public var agreed = 0
    /// Rows and columns that should have been the same, and were not.
    public var found = 0
    /// Those of them that are as they should be now.
    public var mended = 0
    /// Messages that could not be understood.
    public var ignored = 0
}

extension NodeID {
    /// Between 0 and 1, for each node another one.
    var fraction: Double {
        // FNV-1a over the bytes: IDs may have been given out in order.
        let hash = bytes.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        return Double(hash >> 11) / Double(1 << 53 as UInt64)
    }
}
