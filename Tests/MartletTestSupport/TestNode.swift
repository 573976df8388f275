package import Foundation
import GRDB
package import MartletStore
package import MartletSync
import Synchronization

/// A node on a real store in a temporary directory. The test drives its publisher and consumer step by step.
package final class TestNode {
    package let name: String
    package let path: String
    package let clock: TestClock
    package private(set) var store: Store
    package private(set) var engine: SyncEngine
    package private(set) var publisher: Publisher
    package private(set) var consumer: Consumer
    private let bus: any Bus
    private let snapshotBus: (any Bus)?
    /// The topic on which the node writes and finds snapshots.
    package private(set) var snapshots: SnapshotTopic?
    private var configuration: SyncConfiguration
    private let files: StoreConfiguration
    private var security: MessageSecurity

    package init(
        _ name: String, bus: any Bus, snapshots snapshotBus: (any Bus)? = nil, directory: TemporaryDirectory,
        schema: String, copyOf original: String? = nil,
        attach request: AttachRequest = .init(), clock: TestClock = TestClock(),
        security: MessageSecurity = .init(), files: StoreConfiguration = .impatient,
        configure: (inout SyncConfiguration) -> Void = { _ in }
    ) throws {
        self.files = files
        self.name = name
        self.bus = bus
        self.snapshotBus = snapshotBus
        self.clock = clock
        path = directory.path("\(name).sqlite")
        if let original { try FileManager.default.copyItem(atPath: original, toPath: path) }
        var configuration = SyncConfiguration()
        configuration.name = name
        configure(&configuration)
        self.configuration = configuration
        self.security = security
        store = try Store.create(path: path, configuration: files)
        if !schema.isEmpty { try store.write { try $0.execute(sql: schema) } }
        _ = try store.attach(request)
        engine = try SyncEngine(
            path: path, store: files, configuration: configuration, security: security, now: { clock.milliseconds },
            instant: { clock.instant })
        snapshots = TestNode.snapshots(engine, snapshotBus, bus)
        publisher = try Publisher(engine: engine, bus: bus, progressInterval: .zero)
        consumer = Consumer(
            engine: engine, bus: bus, publisher: publisher, snapshots: snapshots, countInterval: .zero)
    }

    /// The parts are small, so that there are many.
    private static func snapshots(_ engine: SyncEngine, _ snapshotBus: (any Bus)?, _ bus: any Bus) -> SnapshotTopic? {
        var configuration = SnapshotConfiguration()
        configuration.partRows = 3
        return snapshotBus.map {
            SnapshotTopic(engine: engine, bus: $0, topic: bus.topic, configuration: configuration)
        }
    }

    /// Restarts the node as if its process had been killed: nothing is closed properly.
    package func restart(
        security: MessageSecurity? = nil, configure: (inout SyncConfiguration) -> Void = { _ in }
    ) throws {
        if let security { self.security = security }
        configure(&configuration)
        engine = try SyncEngine(
            path: path, store: files, configuration: configuration, security: self.security,
            now: { [clock] in clock.milliseconds }, instant: { [clock] in clock.instant })
        snapshots = TestNode.snapshots(engine, snapshotBus, bus)
        publisher = try Publisher(engine: engine, bus: bus, progressInterval: .zero)
        consumer = Consumer(
            engine: engine, bus: bus, publisher: publisher, snapshots: snapshots, countInterval: .zero)
    }

    /// Copies the store, with what is in its write-ahead log, into a new file.
    package func backUp(to file: String) throws {
        let target = try DatabaseQueue(path: file)
        try store.database.backup(to: target)
        try target.close()
    }

    /// Runs SQL like a program that uses Martlet, in a later millisecond than all earlier writes. Which of two writes
    /// is newer must not depend on the speed of the machine.
    package func write(_ sql: String, author: String? = nil) throws {
        SQLiteClock.advance()
        try store.write(author: author) { try $0.execute(sql: sql) }
    }

    /// Runs SQL like a program that knows nothing of Martlet, with SQLite's defaults, in a later millisecond than all
    /// earlier writes.
    ///
    /// - Parameter ahead: how far the program's clock is ahead.
    package func foreignWrite(_ sql: String, foreignKeys: Bool = false, ahead: Duration = .zero) throws {
        SQLiteClock.advance()
        var options = Configuration()
        options.foreignKeysEnabled = foreignKeys
        let queue = try DatabaseQueue(path: path, configuration: options)
        try SQLiteClock.with(ahead: ahead) { try queue.write { try $0.execute(sql: sql) } }
        try queue.close()
    }

    /// Returns the rows of a query, each as text with its values separated by bars.
    package func rows(_ sql: String) throws -> [String] {
        try store.database.read { db in
            try Row.fetchAll(db, sql: sql).map { row in
                row.databaseValues.map {
                    $0.isNull ? "NULL" : "\($0)".trimmingCharacters(in: CharacterSet(charactersIn: "\""))
                }
                .joined(separator: "|")
            }
        }
    }

    /// Publishes until nothing is left to send and everything is acknowledged.
    package func publish() throws {
        try runUntilNothingMoves("publishing") {
            let moved = publisher.step()
            if moved || publisher.currentProgress.inFlightBytes > 0 { return true }
            return publisher.step()
        }
        if let problem = publisher.currentProgress.problem {
            throw TestFailure("publishing is held up: \(problem)")
        }
    }

    /// Reads until the topic has nothing new.
    @discardableResult
    package func consume() throws -> ApplyReport {
        var sum = ApplyReport()
        var idle = 0
        try runUntilNothingMoves("reading") {
            guard let report = consumer.step(timeout: .milliseconds(1)) else { throw TestFailure("reading is held up") }
            sum.applied += report.applied
            sum.duplicates += report.duplicates
            sum.own += report.own
            sum.deferred += report.deferred
            sum.quarantined += report.quarantined
            sum.gaps += report.gaps
            sum.rewound += report.rewound
            idle = report == ApplyReport() ? idle + 1 : 0
            return idle < 2
        }
        return sum
    }
}

/// Publishes and reads on all nodes in three rounds, after which each has received everything of the others.
package func exchange(_ nodes: [TestNode]) throws {
    for _ in 0..<3 {
        for node in nodes { try node.publish() }
        for node in nodes { try node.consume() }
    }
}

extension StoreConfiguration {
    /// Treats rows that are missing from a recreated table as deleted at once, without waiting for rows still to come.
    package static var impatient: StoreConfiguration {
        var configuration = StoreConfiguration()
        configuration.schemaPatience = .zero
        return configuration
    }

    /// Waits for the missing rows of a recreated table for longer than a test takes.
    package static var patient: StoreConfiguration {
        var configuration = StoreConfiguration()
        configuration.schemaPatience = .seconds(600)
        return configuration
    }
}

/// The wall clock of an engine. Follows ``SQLiteClock`` until the test sets it; then it stands still. Triggers have
/// SQLite's clock all the same.
package final class TestClock: Sendable {
    private let time: Mutex<Int64?>
    private let elapsed = Mutex(Duration.zero)

    package init(_ milliseconds: Int64? = nil) { time = Mutex(milliseconds) }

    package var milliseconds: Int64 {
        get { time.withLock { $0 } ?? SQLiteClock.milliseconds }
        set { time.withLock { $0 = newValue } }
    }

    /// The clock by which intervals are measured. Setting the wall clock doesn't change it.
    package var instant: ContinuousClock.Instant { .now + elapsed.withLock { $0 } }

    /// Lets time pass, by both clocks.
    package func pass(_ time: Duration) {
        milliseconds += Int64(time / .milliseconds(1))
        elapsed.withLock { $0 += time }
    }
}

/// A directory that is deleted together with its owner.
package final class TemporaryDirectory {
    package let url: URL

    package init() throws {
        SQLiteClock.install()
        url = FileManager.default.temporaryDirectory.appendingPathComponent("martlet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    package func path(_ name: String) -> String { url.appendingPathComponent(name).path }

    deinit { try? FileManager.default.removeItem(at: url) }
}

package struct TestFailure: Error, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}
