import CBaseline
import Foundation
import GRDB
import MartletStore
import MartletSync
import Synchronization

/// One transaction with many rows: how long it blocks other writers on the writing node and on the applying node, and
/// how long applying it takes compared with C that writes the same rows in one commit.
struct LargeTransaction {
    let run: Run

    private var sizes: [Int] { run.isQuick ? [20_000, 100_000] : [20_000, 100_000, 600_000] }

    func measure() throws {
        for keying in run.keyings {
            for size in sizes { try measure(keying, size) }
        }
    }

    private func measure(_ keying: Keying, _ size: Int) throws {
        let rows = Workload(rowCount: size)
        let bus = InMemoryBus(topic: "t", partitionCount: 1)
        let source = try node(keying)
        defer { run.remove(source) }
        let store = try Store(path: source, configuration: run.settings.store)
        try store.write(author: "app") { db in try SwiftWriter(keying: keying).insert(db, rows.swiftRows[...]) }
        try store.close()

        let origin = try SyncEngine(path: source, store: run.settings.store)
        let publisher = try Publisher(engine: origin, bus: bus)
        let enqueuing = try OtherWriter.longestWait(source) {
            while publisher.step() {}
        }
        try origin.close()
        state(keying, size, "longest wait of another writer while it is enqueued", "ms", enqueuing * 1000)

        var waits: [Double] = []
        let rates = try interleaved(
            run.repetitions,
            [
                {
                    let path = run.newFile()
                    defer { run.remove(path) }
                    guard let database = baseline_open(path, run.settings.baseline) else {
                        throw Failure("The baseline failed.")
                    }
                    baseline_execute(database, keying.schema)
                    let time = baseline_insert(database, keying.isUUID, rows.rows, Int32(size), Int32(size))
                    baseline_close(database)
                    return Double(size) / (try checked(time))
                },
                {
                    let path = try node(keying)
                    defer { run.remove(path) }
                    let engine = try SyncEngine(path: path, store: run.settings.store)
                    let consumer = Consumer(engine: engine, bus: bus)
                    var time = 0.0
                    waits.append(
                        try OtherWriter.longestWait(path) {
                            time = try seconds(run) {
                                var applied = 0
                                while applied == 0 {
                                    guard let report = consumer.step(timeout: .zero) else {
                                        throw Failure("Reading is held up.")
                                    }
                                    applied += report.applied
                                }
                            }
                        })
                    try engine.close()
                    return Double(size) / time
                },
            ])
        run.report.compare(
            "\(keying.rawValue): one transaction of \(size)", "rows/s", baseline: rates[0], martlet: rates[1])
        state(keying, size, "longest wait of another writer while it is applied", "ms", median(waits) * 1000)
    }

    private func state(_ keying: Keying, _ size: Int, _ what: String, _ unit: String, _ value: Double) {
        run.report.state("\(keying.rawValue): \(what), \(size) rows", unit, value)
    }

    /// Creates a store with the table, and an untracked one beside it.
    private func node(_ keying: Keying) throws -> String {
        let path = run.newFile()
        let store = try Store.makeBenchmark(path, keying, run.settings)
        try store.write { try $0.execute(sql: "CREATE TABLE other(n INTEGER)") }
        try store.close()
        return path
    }
}

/// A program that writes a row every 5 ms, with SQLite's own busy handler.
private enum OtherWriter {
    /// The duration of its longest write meanwhile, in seconds.
    static func longestWait(_ path: String, during body: () throws -> Void) throws -> Double {
        var configuration = Configuration()
        configuration.busyMode = .timeout(600)
        let database = try DatabaseQueue(path: path, configuration: configuration)
        let longest = Mutex(0.0)
        let isDone = Atomic(false)
        let writes = DispatchGroup()
        DispatchQueue.global().async(group: writes) {
            while !isDone.load(ordering: .relaxed) {
                let time = seconds {
                    try? database.writeWithoutTransaction { try $0.execute(sql: "INSERT INTO other VALUES (1)") }
                }
                longest.withLock { $0 = max($0, time) }
                usleep(5000)
            }
        }
        let result = Result { try body() }
        isDone.store(true, ordering: .relaxed)
        writes.wait()
        try database.close()
        try result.get()
        return longest.withLock { $0 }
    }
}
