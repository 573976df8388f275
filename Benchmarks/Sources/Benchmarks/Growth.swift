import Foundation
import GRDB
import MartletStore
import MartletSync

/// The cost of a change, a fetch, a prune and a snapshot in stores of different sizes. Where the work depends on the
/// change, the cost should be flat, or grow with the depth of SQLite's trees.
struct Growth {
    let run: Run
    let sizes: [Int]
    private let keying = Keying.uuid
    private let transactionCount = 2000

    func measure() throws {
        let backlog = try Backlog(run, keying, transactionCount: transactionCount)
        defer { run.remove(backlog.path) }
        _ = try backlog.register(run)
        let messages = try MessageSource(path: backlog.path).messages(after: 0, limit: transactionCount)
        for size in sizes {
            let origin = try origin(size)
            defer { run.remove(origin) }
            let snapshots = InMemoryBus(topic: SnapshotTopic.name(of: "t"))
            try apply(origin, size, messages)
            try fetch(origin, size)
            try prune(origin, size)
            try make(origin, size, snapshots)
            try load(origin, size, snapshots)
        }
    }

    /// Creates a store with this many rows, whose changes are all stamped.
    private func origin(_ size: Int) throws -> String {
        let path = run.newFile()
        let store = try Store.makeBenchmark(path, keying, run.settings)
        let each = 10_000
        for first in stride(from: 0, to: size, by: each) {
            try store.write(author: "app") {
                try $0.execute(
                    sql: """
                        WITH RECURSIVE n(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
                        INSERT INTO task
                        SELECT randomblob(16), 'title ' || i, 'a note of some length, number ' || i, i / 3.0, 0 FROM n
                        """, arguments: [first + 1, min(size, first + each)])
            }
        }
        try store.close()
        let engine = try SyncEngine(path: path, store: run.settings.store)
        let time = try seconds(run) { _ = try engine.apply([], topic: "none") }
        try engine.close()
        run.report.state("\(size) rows: registering", "us/row", time / Double(size) * 1e6)
        return path
    }

    // MARK: Snapshots

    private func make(_ path: String, _ size: Int, _ bus: InMemoryBus) throws {
        let engine = try SyncEngine(path: path, store: run.settings.store)
        defer { try? engine.close() }
        let topic = SnapshotTopic(engine: engine, bus: bus, topic: "t")
        var bytes = 0
        let time = try seconds(run) { bytes = try topic.make().byteCount }
        run.report.state("\(size) rows: making a snapshot", "us/row", time / Double(size) * 1e6)
        run.report.state("\(size) rows: the snapshot", "bytes/row", Double(bytes) / Double(size))
    }

    /// Loads the snapshot into a new store and, up to a million rows, into another one over a link that is cut ten
    /// times.
    private func load(_ origin: String, _ size: Int, _ bus: InMemoryBus) throws {
        let rows = try rowCount(origin)
        let copy = run.newFile()
        defer { run.remove(copy) }
        let copying = try seconds(run) {
            try FileManager.default.copyItem(atPath: origin, toPath: copy)
            let file = try FileHandle(forUpdating: URL(fileURLWithPath: copy))
            try file.synchronize()
            try file.close()
        }
        let path = run.newFile()
        defer { run.remove(path) }
        let before = Machine.residentMegabytes
        var most = before
        var reports = 0
        let loading = try load(path, rows, bus) { progress in
            reports += 1
            most = max(most, Machine.residentMegabytes)
        }
        run.report.state("\(size) rows: loading it", "us/row", loading / Double(size) * 1e6)
        run.report.compare(
            "\(size) rows: loading it, to copying the file", "rows/s", baseline: [Double(size) / copying],
            martlet: [Double(size) / loading])
        run.report.state("\(size) rows: memory that loading adds", "MB", most - before)
        run.report.state("\(size) rows: reports of progress", "", Double(reports))

        guard try digest(path) == digest(origin) else { throw Failure("What was loaded is not what was there.") }
        // Beyond that it takes long, and shows nothing that a million rows don't.
        guard size <= 1_000_000 else { return }

        let other = run.newFile()
        defer { run.remove(other) }
        let cut = CutBus(bus, cuts: 10, afterMessages: max(1, reports / 12))
        let time = try load(other, rows, cut) { _ in }
        guard cut.remaining == 0 else { throw Failure("Only \(10 - cut.remaining) of 10 cuts were made.") }
        run.report.compare(
            "\(size) rows: loading it over a link cut ten times", "rows/s", baseline: [Double(size) / loading],
            martlet: [Double(size) / time])
        guard try digest(other) == digest(origin) else { throw Failure("What was loaded is not what was there.") }
    }

    /// Continues after each lost connection, like a restarted node.
    private func load(_ path: String, _ rows: Int, _ bus: any Bus, _ each: (SnapshotProgress) -> Void) throws -> Double
    {
        try Store.makeBenchmark(path, keying, run.settings).close()
        return try seconds(run) {
            while true {
                let engine = try SyncEngine(path: path, store: run.settings.store)
                defer { try? engine.close() }
                do {
                    let topic = SnapshotTopic(engine: engine, bus: bus, topic: "t")
                    let progress = try topic.load(partitionCount: 1) { progress in
                        each(progress)
                        return true
                    }
                    guard progress?.isFinished == true, progress?.rows == rows else {
                        throw Failure("Not all was loaded: \(String(describing: progress))")
                    }
                    return
                } catch let error as BusError where error.isRetriable {
                    continue
                }
            }
        }
    }

    private func rowCount(_ path: String) throws -> Int {
        let queue = try DatabaseQueue(path: path)
        defer { try? queue.close() }
        return try queue.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM task") ?? 0 }
    }

    private func digest(_ path: String) throws -> String {
        let store = try Store(path: path, configuration: run.settings.store)
        defer { try? store.close() }
        return try StoreDigest.compute(store).digest
    }

    // MARK: Changes, history

    private func apply(_ path: String, _ size: Int, _ messages: [IncomingMessage]) throws {
        let engine = try SyncEngine(path: path, store: run.settings.store)
        defer { try? engine.close() }
        let time = try seconds(run) {
            for start in stride(from: 0, to: messages.count, by: 100) {
                _ = try engine.apply(Array(messages[start..<min(messages.count, start + 100)]), topic: "t")
            }
        }
        run.report.state("\(size) rows: applying, 100 a commit", "us/change", time / Double(messages.count) * 1e6)
    }

    private func fetch(_ path: String, _ size: Int) throws {
        let store = try Store(path: path, configuration: run.settings.store)
        defer { try? store.close() }
        guard let last = try store.lastToken() else { throw Failure("There is no history.") }
        var query = HistoryQuery()
        query.newestFirst = true
        query.limit = 100
        guard let after = try store.fetchHistory(query).last?.token else { throw Failure("There is no history.") }
        let count = 200
        var found = 0
        let all = try seconds(run) {
            for _ in 0..<count { found = try store.fetchHistory(HistoryQuery(after: after)).count }
        }
        guard found == 99 else { throw Failure("\(found) transactions instead of 99") }
        let none = try seconds(run) {
            for _ in 0..<count { _ = try store.fetchHistory(HistoryQuery(after: last)) }
        }
        run.report.state("\(size) rows: fetching 99 transactions after a token", "us", all / Double(count) * 1e6)
        run.report.state("\(size) rows: fetching none", "us", none / Double(count) * 1e6)
    }

    /// Prunes the oldest hundredth of the history, but at least one transaction of 10,000 changes.
    private func prune(_ path: String, _ size: Int) throws {
        // As if everything had been published: before that, the publisher's cursor keeps the history.
        let queue = try DatabaseQueue(path: path)
        try queue.write { try $0.execute(sql: "DELETE FROM _martlet_cursors") }
        try queue.close()
        let store = try Store(path: path, configuration: run.settings.store)
        defer { try? store.close() }
        var query = HistoryQuery()
        query.limit = max(1, size / 1_000_000)
        guard let through = try store.fetchHistory(query).last?.token else { throw Failure("There is no history.") }
        var deleted = 0
        let time = try seconds(run) { deleted = try store.deleteHistory(through: through).deletedCount }
        guard deleted > 0 else { throw Failure("Nothing was pruned.") }
        run.report.state("\(size) rows: pruning", "us/change", time / Double(deleted) * 1e6)
    }
}

/// A bus whose consumers lose the connection a given number of times.
private final class CutBus: Bus, @unchecked Sendable {
    let topic: String
    private let bus: InMemoryBus
    private let afterMessages: Int
    // Confined to the main thread.
    private(set) var remaining: Int

    init(_ bus: InMemoryBus, cuts: Int, afterMessages: Int) {
        self.bus = bus
        self.afterMessages = afterMessages
        topic = bus.topic
        remaining = cuts
    }

    func makeProducer(acknowledge: @escaping @Sendable (Acknowledgement) -> Void) throws(BusError) -> any BusProducer {
        try bus.makeProducer(acknowledge: acknowledge)
    }

    func makeConsumer() throws(BusError) -> any BusConsumer { CutConsumer(try bus.makeConsumer(), self) }

    final class CutConsumer: BusConsumer, @unchecked Sendable {
        private let consumer: any BusConsumer
        private let bus: CutBus
        private var count = 0

        init(_ consumer: any BusConsumer, _ bus: CutBus) {
            self.consumer = consumer
            self.bus = bus
        }

        func knownEnd(of partition: Int32) -> Int64? { consumer.knownEnd(of: partition) }
        func partitionCount(timeout: Duration) throws(BusError) -> Int { try consumer.partitionCount(timeout: timeout) }
        func assign(_ positions: [PartitionPosition]) throws(BusError) { try consumer.assign(positions) }
        func watermarks(partition: Int32, timeout: Duration) throws(BusError) -> Watermarks {
            try consumer.watermarks(partition: partition, timeout: timeout)
        }
        func publishProgress(_ positions: [PartitionPosition], of node: String) {}
        func close() { consumer.close() }

        func poll(maxCount: Int, timeout: Duration) throws(BusError) -> ConsumerBatch {
            let batch = try consumer.poll(maxCount: maxCount, timeout: timeout)
            // Inspecting the topic reads many messages at once; loading reads a few.
            if maxCount < 100 { count += batch.messages.count }
            if bus.remaining > 0, count > bus.afterMessages {
                bus.remaining -= 1
                throw BusError(.unreachable, "the link was cut", isRetriable: true)
            }
            return batch
        }
    }
}
