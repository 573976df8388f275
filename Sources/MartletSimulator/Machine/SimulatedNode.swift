import Foundation
import GRDB
import GRDBSQLite
import Logging
import MartletStore
import MartletSync
import Synchronization

/// A node: a real store in a file, a real engine on it, and another program that doesn't use Martlet.
final class SimulatedNode {
    /// A transaction that was made on this node.
    struct LocalWrite: Equatable {
        var id: String
        /// Nil for one of the other program.
        var author: String?
    }

    let name: String
    let path: String
    /// Its node ID on the topic.
    var id: UUID
    /// Former node IDs, under which it may have published.
    var formerIDs: [UUID] = []
    let link: SimulatedLink
    /// The link to the topic for snapshots.
    let snapshotLink: SimulatedLink
    /// The link to the topic for anti-entropy.
    let checkLink: SimulatedLink
    let clock: NodeClock
    private let time: TrueTime
    let plan: Plan.Node
    private let horizon: Duration?
    private let security: MessageSecurity
    private let log: Logger
    /// The transactions that were committed on this node, in order.
    var written: [LocalWrite] = []
    /// The transaction that was being committed when the machine died.
    var uncertain: LocalWrite?
    /// The position of a reader of the history: a program's own cursor, which survives crashes.
    var token: HistoryToken?
    var read: [LocalWrite] = []
    var highestMark: Int64 = 0
    /// The version of the schema.
    var version = 0
    /// The remaining statements of a program that has copied a table, and the version of the schema. The copy is in the
    /// file.
    var copiedTable: (version: Int, rest: [String])?
    /// The number of steps for which the node does nothing of its own accord.
    var idleSteps = 0

    /// Counts the stores that this node has had: each uses a prefix of its own for what it writes.
    var life = 0
    /// The number of transactions in the history with which the present store started.
    var inherited = 0
    /// The transactions in an older copy of the file, if there is one.
    var backup: [LocalWrite]?
    var backupPath: String { path + ".backup" }
    /// True for a copy that doesn't have a node ID of its own yet. An agent detects that by the location of the file.
    var isCopy = false
    /// A copy of this node, which takes over some of its steps.
    var copy: SimulatedNode?
    /// True once the node knows, since its start, that nobody else has its node ID.
    var isSure = false
    /// The number of bytes by which its files may grow. Nil: no limit.
    var room: Int64?
    /// How long the node waits for the rows of a table that a program has recreated.
    var schemaPatience = Duration.zero

    private(set) var open: Open?
    /// The connection with which the first start continues.
    private var firstOther: DatabaseQueue?
    /// True if rows of a snapshot were skipped before an earlier restart.
    private var leftOut = false
    /// True if rows of a snapshot were skipped because they can't be told from deleted ones (decision 19).
    var hasLeftOut: Bool { leftOut || open.map { TombstoneCollection($0.engine).hasLeftOut } ?? false }

    /// The objects that a running node has in memory.
    struct Open {
        var store: Store
        var engine: SyncEngine
        var publisher: Publisher
        var snapshots: SnapshotTopic
        var consumer: Consumer
        /// Nil if tombstones are never collected.
        var antiEntropy: AntiEntropy?
        var other: DatabaseQueue
    }

    init(
        index: Int, path: String, other: DatabaseQueue? = nil, plan: Plan.Node, topic: SimulatedTopic,
        snapshots: SimulatedTopic,
        checks: SimulatedTopic, horizon: Duration?, time: TrueTime,
        log: Logger
    ) {
        name = Self.name(index)
        self.path = path
        firstOther = other
        self.plan = plan
        self.log = log
        self.time = time
        id = UUIDs.make(plan.id)
        clock = NodeClock(time)
        link = SimulatedLink(topic, queueLimit: plan.queueLimit)
        snapshotLink = SimulatedLink(snapshots, queueLimit: .max, isImmediate: true)
        checkLink = SimulatedLink(checks, queueLimit: .max, isImmediate: true)
        self.horizon = horizon
        security = topic.security
    }

    /// Letters only, since a number follows in the IDs that it writes: a to z, then aa, ab and so on.
    static func name(_ index: Int) -> String {
        (index < 26 ? "" : name(index / 26 - 1)) + String(UnicodeScalar(UInt8(97 + index % 26)))
    }

    /// Opens the files if the node is down.
    ///
    /// - Throws: also if the machine dies meanwhile.
    func start() throws -> Open {
        if let open { return open }
        var configuration = SyncConfiguration()
        configuration.name = name
        configuration.applyBatchTransactions = plan.batch
        configuration.maxMessageBytes = plan.maxMessageBytes
        configuration.encoding = plan.isJSON ? .json : .protobuf
        configuration.recentClocks = plan.recentClocks
        // Enough retries for transactions that the topic loses again and again.
        configuration.republishPauses = [.zero] + [Duration](repeating: .milliseconds(20), count: 1000)
        // With a low limit on collected clocks, a commit enqueues few changes, too.
        if plan.recentClocks <= 20 { configuration.enqueueLimits.changes = 1 + plan.recentClocks % 5 }
        var files = StoreConfiguration()
        files.walAutocheckpointPages = plan.checkpointPages
        files.cacheKiB = 1024
        files.isObserved = false
        files.checkpointsAside = false
        files.schemaPatience = schemaPatience
        let store = try Store(path: path, configuration: files)
        let engine = try SyncEngine(
            opened: path, store: files, configuration: configuration, security: security,
            now: { [clock] in clock.milliseconds }, instant: { [time] in time.instant() })
        // The engine waits in its own time.
        let pause: @Sendable (Duration) -> Void = { [time, clock] pause in
            time.milliseconds += pause.wholeMilliseconds
            Machine.setTime(clock.milliseconds)
        }
        if schemaPatience > .zero { engine.session.schemaPauses.withLock { $0 = pause } }
        let publisher = try Publisher(engine: engine, bus: link, store: files, progressInterval: .zero, log: log)
        var parts = SnapshotConfiguration()
        parts.partRows = 1 + plan.batch * 4
        let snapshots = SnapshotTopic(
            engine: engine, bus: snapshotLink, topic: link.topic, configuration: parts, log: log)
        let consumer = Consumer(
            engine: engine, bus: link, publisher: publisher, snapshots: snapshots, countInterval: .zero, log: log)
        let antiEntropy = horizon.map { horizon in
            var checks = AntiEntropyConfiguration()
            // Checks only on request.
            checks.interval = .zero
            checks.tombstoneHorizon = horizon
            return AntiEntropy(engine: engine, bus: checkLink, topic: link.topic, configuration: checks, log: log)
        }
        let opened = Open(
            store: store, engine: engine, publisher: publisher, snapshots: snapshots, consumer: consumer,
            antiEntropy: antiEntropy,
            other: try firstOther ?? Self.connect(path))
        firstOther = nil
        open = opened
        return opened
    }

    /// Connects like any other program.
    static func connect(_ path: String) throws -> DatabaseQueue {
        try DatabaseQueue(path: path, configuration: otherConfiguration)
    }

    /// Skips GRDB's work for observers when it compiles statements: each start recompiles those of all checks.
    private static let otherConfiguration: Configuration = {
        var configuration = Configuration()
        configuration.prepareDatabase { db in sqlite3_set_authorizer(db.sqliteConnection, nil, nil) }
        return configuration
    }()

    /// The prefix of the IDs that the present store writes.
    var prefix: String { "\(name)\(life)." }

    /// Resets the readers, which know nothing of the file that has replaced the former one.
    func forgetReaders() {
        token = nil
        read = []
    }

    /// Loses all memory. Earlier writes stay in the file, and nothing more is written.
    func crash() {
        Machine.die(afterWrites: 0)
        leftOut = hasLeftOut
        try? firstOther?.close()
        firstOther = nil
        if let open {
            try? open.other.close()
            try? open.store.close()
            try? open.engine.close()
        }
        open = nil
        isSure = false
        Machine.revive()
        link.restart()
        snapshotLink.restart()
        checkLink.restart()
    }
}
