import CBaseline
import Foundation
import GRDB
import MartletStore
import MartletSync

/// Applying a backlog of another node's transactions, with clocks and history, compared with upserts of the same
/// changes by plain C in equal commits.
struct ApplyBacklog {
    let run: Run

    private var transactionCount: Int { run.isQuick ? 20_000 : 200_000 }

    /// - Parameter changes: how many changes the transactions have.
    func measure(changes: [Int]) throws {
        for keying in run.keyings { for size in changes { try measure(keying, changes: size) } }
    }

    /// Always measures the same number of changes.
    private func measure(_ keying: Keying, changes size: Int) throws {
        let transactionCount = self.transactionCount / size
        let backlog = try Backlog(run, keying, transactionCount: transactionCount, changesPerTransaction: size)
        defer { run.remove(backlog.path) }
        let time = try backlog.register(run)
        if size == 1 {
            run.report.state(
                "\(keying.rawValue): registering at the origin", "transactions/s", Double(transactionCount) / time)
        }
        let messages = try MessageSource(path: backlog.path).messages(after: 0, limit: transactionCount)
        guard messages.count == transactionCount else {
            throw Failure("The outbox has \(messages.count) messages.")
        }
        let bus = try self.bus(messages)
        for perCommit in size == 1 ? [1, 100, 500] : [1, 100] where perCommit * size <= self.transactionCount / 10 {
            let count = perCommit == 1 && size == 1 ? transactionCount / 10 : transactionCount
            let goal = size == 1 ? (perCommit == 1 ? 0.35 : 0.5) : nil
            try compare(backlog, messages, count, perCommit, goal)
            if perCommit > 1 { try catchUp(backlog, bus, count, perCommit, size == 100 ? 0.4 : goal) }
            if perCommit > 1 || keying == .integer { try compareHistory(backlog, count, perCommit) }
        }
        guard size == 1 else { return }
        for count in [transactionCount / 4, transactionCount] {
            let memory = try memory(backlog.path, count)
            run.report.state("\(keying.rawValue): most memory of a process that applies \(count)", "MB", memory)
        }
    }

    /// Measures the engine alone, on one thread.
    private func compare(
        _ backlog: Backlog, _ messages: [IncomingMessage], _ count: Int, _ perCommit: Int, _ goal: Double?
    ) throws {
        try compareEngine(name("the engine alone", backlog, perCommit), backlog, count, perCommit, goal) { engine in
            for start in stride(from: 0, to: count, by: perCommit) {
                let report = try engine.apply(Array(messages[start..<min(count, start + perCommit)]), topic: "t")
                guard report.applied == min(count - start, perCommit) else {
                    throw Failure("Not all was applied: \(report)")
                }
            }
        }
    }

    /// Measures an agent's way of catching up: another thread decodes the next messages meanwhile.
    private func catchUp(_ backlog: Backlog, _ bus: InMemoryBus, _ count: Int, _ perCommit: Int, _ goal: Double?) throws
    {
        try compareEngine(name("caught up by a consumer", backlog, perCommit), backlog, count, perCommit, goal) {
            engine in
            let consumer = Consumer(engine: engine, bus: bus)
            var applied = 0
            while applied < count {
                guard let report = consumer.step(timeout: .zero) else { throw Failure("Reading is held up.") }
                applied += report.applied
            }
        }
    }

    private func name(_ what: String, _ backlog: Backlog, _ perCommit: Int) -> String {
        let size = backlog.changesPerTransaction
        return "\(what)\(size == 1 ? "" : ", \(size) changes each"), \(perCommit) a commit"
    }

    private func bus(_ messages: [IncomingMessage]) throws -> InMemoryBus {
        let bus = InMemoryBus(topic: "t")
        let producer = try bus.makeProducer { _ in }
        for message in messages {
            try producer.send(
                OutgoingMessage(key: message.key, headers: message.headers, payload: message.payload, tag: 0))
        }
        producer.close()
        return bus
    }

    private func compareEngine(
        _ what: String, _ backlog: Backlog, _ count: Int, _ perCommit: Int, _ goal: Double?,
        _ apply: @escaping (SyncEngine) throws -> Void
    ) throws {
        try compare(what, backlog, count, perCommit, goal) { path in
            let engine = try receiver(path, backlog.keying, batch: perCommit)
            let time = try seconds(run) { try apply(engine) }
            try engine.close()
            return time
        }
    }

    /// Measures how much slower C is with the same writes: the rest is Martlet's cost of reading messages and deciding.
    private func compareHistory(_ backlog: Backlog, _ count: Int, _ perCommit: Int) throws {
        try compare(name("C that writes what applying writes", backlog, perCommit), backlog, count, perCommit, nil) {
            path in
            // The engine creates its own tables.
            try receiver(path, backlog.keying).close()
            guard let database = baseline_open(path, run.settings.baseline) else {
                throw Failure("The baseline failed.")
            }
            let rows = backlog.workload.rows
            let operations = backlog.workload.operations
            let size = backlog.changesPerTransaction
            let time =
                backlog.keying == .uuid
                ? baseline_apply_with_history(
                    database, rows, Int32(rows.count), operations, Int32(count * size), Int32(size),
                    Int32(perCommit * size))
                : baseline_apply_keyed(
                    database, rows, operations, Int32(count * size), Int32(size), Int32(perCommit * size))
            baseline_close(database)
            return try checked(time)
        }
    }

    /// - Parameter apply: receives a new file, and returns how long applying took.
    private func compare(
        _ what: String, _ backlog: Backlog, _ count: Int, _ perCommit: Int, _ goal: Double?,
        _ apply: @escaping (String) throws -> Double
    ) throws {
        let size = backlog.changesPerTransaction
        var digests: Set<String> = []
        let rates = try interleaved(
            run.repetitions,
            [
                {
                    let path = run.newFile()
                    defer { run.remove(path) }
                    guard let database = baseline_open(path, run.settings.baseline) else {
                        throw Failure("The baseline failed.")
                    }
                    baseline_execute(database, backlog.keying.schema)
                    let time = baseline_apply(
                        database, backlog.keying.isUUID, backlog.workload.rows, backlog.workload.operations,
                        Int32(count * size),
                        Int32(perCommit * size))
                    baseline_close(database)
                    digests.insert(try digest(path))
                    return Double(count) / (try checked(time))
                },
                {
                    let path = run.newFile()
                    defer { run.remove(path) }
                    let time = try apply(path)
                    digests.insert(try digest(path))
                    return Double(count) / time
                },
            ])
        guard digests.count == 1 else {
            throw Failure("The baseline and Martlet have made different tables: \(digests)")
        }
        run.report.compare(
            "\(backlog.keying.rawValue): \(what)", "transactions/s", baseline: rates[0], martlet: rates[1], goal: goal)
    }

    private func receiver(_ path: String, _ keying: Keying, batch: Int = 500) throws -> SyncEngine {
        try Store.makeBenchmark(path, keying, run.settings).close()
        var configuration = SyncConfiguration()
        configuration.applyBatchTransactions = batch
        return try SyncEngine(path: path, store: run.settings.store, configuration: configuration)
    }

    /// A digest that differs if two tables differ.
    private func digest(_ path: String) throws -> String {
        let queue = try DatabaseQueue(path: path)
        defer { try? queue.close() }
        return try queue.read { db in
            let row = try Row.fetchOne(
                db,
                sql: "SELECT count(*), sum(weight), sum(done), sum(length(title)), max(hex(id)), min(note) FROM task")
            return "\(row.map { Array($0.databaseValues) } ?? [])"
        }
    }

    // MARK: Memory

    /// Runs in a process of its own, since the peak of the whole process is measured.
    private func memory(_ source: String, _ count: Int) throws -> Double {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = ["--memory-of", source, "--memory-count", "\(count)", "--settings", run.settings.rawValue]
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard
            let kilobytes = Double(
                String(decoding: output, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
        else {
            throw Failure("The memory could not be measured.")
        }
        return kilobytes / 1000
    }

    /// Applies messages as they are read from the origin's file, and prints the process's peak memory, in kB.
    static func measureMemory(_ run: Run, source: String, count: Int, batch: Int) throws {
        let path = run.newFile()
        let messages = try MessageSource(path: source)
        let schema = try DatabaseQueue(path: source).read {
            try String.fetchOne($0, sql: "SELECT sql FROM sqlite_schema WHERE name = 'task'")
        }
        let keying = Keying.allCases.first { $0.schema == schema } ?? .uuid
        let engine = try ApplyBacklog(run: run).receiver(path, keying)
        for start in stride(from: 0, to: count, by: batch) {
            _ = try engine.apply(messages.messages(after: Int64(start), limit: min(batch, count - start)), topic: "t")
        }
        try engine.close()
        let peak = Machine.lines("/proc/self/status").first { $0.hasPrefix("VmHWM:") }
        print(peak?.split(whereSeparator: \.isWhitespace).dropFirst().first ?? "?")
    }
}
