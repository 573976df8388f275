import CBaseline
import Foundation
import GRDB
import MartletStore
import MartletSync

/// Making a snapshot, and loading it into an empty store, compared with plain C that inserts the same rows in equal
/// commits into a table that nobody tracks.
struct Bootstrap {
    let run: Run
    let sizes: [Int]

    /// As many as a part of a snapshot has.
    private let perCommit = SnapshotConfiguration().partRows

    func measure() throws {
        for keying in run.keyings {
            for size in sizes { try measure(keying, size) }
        }
    }

    private func measure(_ keying: Keying, _ size: Int) throws {
        let workload = Workload(rowCount: size)
        let origin = try origin(keying, workload)
        defer { run.remove(origin) }
        let (snapshots, making) = try make(origin)
        let digest = try storeDigest(origin)
        var contents: Set<String> = []
        let rates = try interleaved(
            run.repetitions,
            [
                { try insert(keying, workload, &contents) },
                {
                    let path = try tracked(keying)
                    defer { run.remove(path) }
                    let time = try load(path, size, snapshots)
                    contents.insert(try tableDigest(path))
                    guard try storeDigest(path) == digest else {
                        throw Failure("What was loaded is not what was there.")
                    }
                    return Double(size) / time
                },
                { try write(keying, workload, logs: true) },
                { try write(keying, workload, logs: false) },
            ])
        guard contents.count == 1 else {
            throw Failure("The baseline and Martlet have made different tables: \(contents)")
        }
        let what = "\(keying.rawValue), \(size) rows"
        // The rate of making it is measured once: it reads, and nothing competes with it.
        run.report.compare(
            "\(what): making a snapshot", "rows/s", baseline: rates[0],
            martlet: rates[0].map { _ in Double(size) / making })
        run.report.compare("\(what): loading it", "rows/s", baseline: rates[0], martlet: rates[1], goal: 0.2)
        run.report.compare(
            "\(what): C that writes what loading writes", "rows/s", baseline: rates[0], martlet: rates[2])
        run.report.compare(
            "\(what): C that writes it without the log", "rows/s", baseline: rates[0], martlet: rates[3])
    }

    /// Creates a store with the rows, whose changes are all stamped.
    private func origin(_ keying: Keying, _ workload: Workload) throws -> String {
        let path = try tracked(keying)
        let store = try Store(path: path, configuration: run.settings.store)
        let writer = SwiftWriter(keying: keying)
        let rows = workload.swiftRows
        for first in stride(from: 0, to: rows.count, by: 10_000) {
            try store.write(author: "app") { try writer.insert($0, rows[first..<min(rows.count, first + 10_000)]) }
        }
        try store.close()
        let engine = try SyncEngine(path: path, store: run.settings.store)
        _ = try engine.apply([], topic: "none")
        try engine.close()
        return path
    }

    private func tracked(_ keying: Keying) throws -> String {
        let path = run.newFile()
        try Store.makeBenchmark(path, keying, run.settings).close()
        return path
    }

    /// - Returns: the topic with the snapshot, and how long making it took.
    private func make(_ path: String) throws -> (InMemoryBus, Double) {
        let engine = try SyncEngine(path: path, store: run.settings.store)
        defer { try? engine.close() }
        let bus = InMemoryBus(topic: SnapshotTopic.name(of: "t"))
        let topic = SnapshotTopic(engine: engine, bus: bus, topic: "t")
        let time = try seconds(run) { _ = try topic.make() }
        return (bus, time)
    }

    private func load(_ path: String, _ size: Int, _ bus: InMemoryBus) throws -> Double {
        let engine = try SyncEngine(path: path, store: run.settings.store)
        defer { try? engine.close() }
        let topic = SnapshotTopic(engine: engine, bus: bus, topic: "t")
        return try seconds(run) {
            let progress = try topic.load(partitionCount: 1)
            guard progress?.isFinished == true, progress?.rows == size else {
                throw Failure("Not all was loaded: \(String(describing: progress))")
            }
        }
    }

    // MARK: The baselines

    private func insert(_ keying: Keying, _ workload: Workload, _ contents: inout Set<String>) throws -> Double {
        let path = run.newFile()
        defer { run.remove(path) }
        let count = Int32(workload.rows.count)
        let time = try withBaseline(path) { database in
            baseline_execute(database, keying.schema)
            return baseline_insert(database, keying.isUUID, workload.rows, count, Int32(perCommit))
        }
        contents.insert(try tableDigest(path))
        return Double(count) / time
    }

    private func write(_ keying: Keying, _ workload: Workload, logs: Bool) throws -> Double {
        let path = try tracked(keying)
        defer { run.remove(path) }
        // The engine creates its own tables.
        try SyncEngine(path: path, store: run.settings.store).close()
        let count = Int32(workload.rows.count)
        let time = try withBaseline(path) { database in
            baseline_load(database, keying.isUUID, logs ? 1 : 0, workload.rows, count, Int32(perCommit))
        }
        return Double(count) / time
    }

    private func withBaseline(_ path: String, _ body: (OpaquePointer) -> Double) throws -> Double {
        guard let database = baseline_open(path, run.settings.baseline) else { throw Failure("The baseline failed.") }
        let time = body(database)
        baseline_close(database)
        return try checked(time)
    }

    // MARK: Digests

    private func storeDigest(_ path: String) throws -> String {
        let store = try Store(path: path, configuration: run.settings.store)
        defer { try? store.close() }
        return try StoreDigest.compute(store).digest
    }

    /// A digest that differs if two tables differ.
    private func tableDigest(_ path: String) throws -> String {
        let queue = try DatabaseQueue(path: path)
        defer { try? queue.close() }
        return try queue.read { db in
            let row = try Row.fetchOne(
                db,
                sql: "SELECT count(*), sum(weight), sum(done), sum(length(title)), max(hex(id)), min(note) FROM task")
            return "\(row.map { Array($0.databaseValues) } ?? [])"
        }
    }
}
