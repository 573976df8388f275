import Foundation
import GRDB
import GRDBSQLite
import Logging
import MartletStore
import MartletSync

/// A node: a real store in a file, a real engine on it, and a program beside them that knows nothing of Martlet.
final class SimulatedNode {
    /// A transaction that was made here.
    struct LocalWrite: Equatable {
        var id: String
        /// Absent for one of the other program.
        var author: String?
    }

    let index: Int
    let name: String
    let path: String
    /// What it is called on the topic.
    var id: UUID
    /// What it was called before, under which it may have published.
    var formerIDs: [UUID] = []
    let link: SimulatedLink
    /// The way to the topic for snapshots.
    let snapshotLink: SimulatedLink
    /// The way to the topic for checks.
    let checkLink: SimulatedLink
    let clock: NodeClock
    private let time: TrueTime
    let plan: Plan.Node
    private let horizon: Duration?
    private let security: MessageSecurity
    private let log: Logger
    /// What was committed here, in order.
    var written: [LocalWrite] = []
    /// What was being committed when the machine died.
    var uncertain: LocalWrite?
    /// What a reader of the history has read so far: a program's own cursor, which outlives crashes.
    var token: HistoryToken?
    var read: [LocalWrite] = []
    var highestMark: Int64 = 0
    /// Which shape the schema has.
    var version = 0
    /// What a program has still to do that has copied a table, in which version of the schema. The copy is in the file.
    var copiedTable: (version: Int, rest: [String])?
    /// Steps for which the node does nothing of its own accord.
    var idleSteps = 0

    /// Counts the stores that were here: each writes under names of its own.
    var life = 0
    /// How many transactions of the history the present store began with.
    var inherited = 0
    /// An older copy of the file, and what was in it.
    var backup: [LocalWrite]?
    var backupPath: String { path + ".backup" }
    /// True for a copy that was not given a name of its own yet. An agent sees it by the place where the file is.
    var isCopy = false
    /// A copy of this node, which does some of what it would have done.
    var copy: SimulatedNode?
    /// True once the node knows, since its start, that it is the only one of its name.
    var isSure = false
    /// How many bytes its files may grow by. Nil: there is always room.
    var room: Int64?

    private(set) var open: Open?
    /// What the first start goes on with.
    private var firstOther: DatabaseQueue?
    /// True where rows of a snapshot were left out at an earlier start.
    private var leftOut = false
    /// True where rows of a snapshot were left out that nobody can tell from deleted ones (decision 19).
    var hasLeftOut: Bool { leftOut || open?.engine.hasLeftOut ?? false }

    /// What a running node has in memory.
    struct Open {
        var store: Store
        var engine: SyncEngine
        var publisher: Publisher
        var snapshots: SnapshotTopic
        var consumer: Consumer
        /// Absent where nothing is ever forgotten.
        var checker: Checker?
        var other: DatabaseQueue
    }

    init(
        index: Int, path: String, other: DatabaseQueue? = nil, plan: Plan.Node, topic: SimulatedTopic,
        snapshots: SimulatedTopic,
        checks: SimulatedTopic, horizon: Duration?, time: TrueTime,
        log: Logger
    ) {
        self.index = index
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

    /// Letters only, since a number follows in the names of what it writes: a to z, then aa, ab and so on.
    static func name(_ index: Int) -> String {
        (index < 26 ? "" : name(index / 26 - 1)) + String(UnicodeScalar(UInt8(97 + index % 26)))
    }

    /// Opens the files where the node is down.
    ///
    /// - Throws: also where the machine dies meanwhile.
    func start() throws -> Open {
        if let open { return open }
        var configuration = SyncConfiguration()
        configuration.name = name
        configuration.applyBatchTransactions = plan.batch
        configuration.maxMessageBytes = plan.maxMessageBytes
        configuration.encoding = plan.isJSON ? .json : .protobuf
        configuration.recentClocks = plan.recentClocks
        // Whatever the topic loses again and again comes back in the end.
        configuration.republishPauses = [.zero] + [Duration](repeating: .milliseconds(20), count: 1000)
        // Where few clocks are collected, few changes are enqueued in one commit, too.
        if plan.recentClocks <= 20 { configuration.enqueueLimits.changes = 1 + plan.recentClocks % 5 }
        var files = StoreConfiguration()
        files.walAutocheckpointPages = plan.checkpointPages
        files.cacheKiB = 1024
        files.isObserved = false
        files.checkpointsAside = false
        files.schemaPatience = .zero
        let store = try Store(path: path, configuration: files)
        let engine = try SyncEngine(
            opened: path, store: files, configuration: configuration, security: security,
            now: { [clock] in clock.milliseconds }, instant: { [time] in time.instant() })
        let publisher = try Publisher(engine: engine, bus: link, store: files, progressInterval: .zero, log: log)
        var parts = SnapshotConfiguration()
        parts.partRows = 1 + plan.batch * 4
        let snapshots = SnapshotTopic(
            engine: engine, bus: snapshotLink, topic: link.topic, configuration: parts, log: log)
        let consumer = Consumer(
            engine: engine, bus: link, publisher: publisher, snapshots: snapshots, countInterval: .zero, log: log)
        let checker = horizon.map { horizon in
            var checks = CheckConfiguration()
            // Only when it is told to.
            checks.interval = .zero
            checks.tombstoneHorizon = horizon
            return Checker(engine: engine, bus: checkLink, topic: link.topic, configuration: checks, log: log)
        }
        let opened = Open(
            store: store, engine: engine, publisher: publisher, snapshots: snapshots, consumer: consumer,
            checker: checker,
            other: try firstOther ?? Self.connect(path))
        firstOther = nil
        open = opened
        return opened
    }

    /// Connects as any other program would.
    static func connect(_ path: String) throws -> DatabaseQueue {
        try DatabaseQueue(path: path, configuration: otherConfiguration)
    }

    /// Without what GRDB does for observers as it compiles statements: each start compiles those of all checks anew.
    private static let otherConfiguration: Configuration = {
        var configuration = Configuration()
        configuration.prepareDatabase { db in sqlite3_set_authorizer(db.sqliteConnection, nil, nil) }
        return configuration
    }()

    /// What begins the names of what the present store writes.
    var prefix: String { "\(name)\(life)." }

    /// The file is another one from now on, of which its readers know nothing.
    func forgetReaders() {
        token = nil
        read = []
    }

    /// All memory is lost. What was written stays, and nothing more is.
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
