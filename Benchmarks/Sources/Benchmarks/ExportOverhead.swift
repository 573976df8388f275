import Foundation
import GRDB
import MartletStore
import MartletSync

/// What exporting costs an agent: the same transactions, published by an agent that exports nothing, and by one that
/// also exports each change.
struct ExportOverhead {
    let run: Run
    let broker: Broker
    let martlet: String?

    private static let prefix = "bench"
    private var transactionCount: Int { run.isQuick ? 5000 : 50_000 }

    /// One agent's work.
    private struct Cost {
        /// Transactions a second, from the first commit until the broker has the last one.
        var published: Double
        /// Changes a second, from the first commit until the last one is exported. Nil: nothing is.
        var exported: Double?
        /// Processor time of the agent, in microseconds for a transaction.
        var processor: Double
        /// Most resident memory of the agent, in MB.
        var memory: Double
    }

    func measure() throws {
        guard let martlet else { return run.report.note("SKIPPED: no binary was given (--martlet PATH)") }
        guard let bootstrap = broker.bootstrap() else {
            return run.report.note("SKIPPED: there is no broker (--bootstrap)")
        }
        var (plain, exporting): ([Cost], [Cost]) = ([], [])
        for _ in 0..<run.repetitions {
            plain.append(try cost(martlet, bootstrap, exports: false))
            exporting.append(try cost(martlet, bootstrap, exports: true))
        }
        run.report.compare(
            "published while exporting, to published without", "transactions/s", baseline: plain.map(\.published),
            martlet: exporting.map(\.published))
        run.report.compare(
            "exported, to published without exporting", "changes/s", baseline: plain.map(\.published),
            martlet: exporting.compactMap(\.exported))
        run.report.compare(
            "processor time of the agent for a transaction", "µs", baseline: median(plain.map(\.processor)),
            martlet: median(exporting.map(\.processor)))
        run.report.compare(
            "most memory of the agent", "MB", baseline: median(plain.map(\.memory)),
            martlet: median(exporting.map(\.memory)))
        run.report.note("Baseline is the agent that exports nothing. A program inserts one row a commit meanwhile.")
    }

    private func cost(_ martlet: String, _ bootstrap: String, exports: Bool) throws -> Cost {
        let path = run.newFile()
        defer { run.remove(path) }
        let store = try Store.makeBenchmark(path, .uuid, run.settings)
        let rows = Workload(rowCount: transactionCount + 1).swiftRows
        let writer = SwiftWriter(keying: .uuid)
        func insert(_ index: Int) throws {
            try store.write(author: "app") { try writer.insert($0, rows[index...index]) }
        }
        // The agent has started, and has exported the first row as it is.
        try insert(0)
        let agent = try start(martlet, bootstrap, path, exports: exports)
        defer {
            agent.terminate()
            agent.waitUntilExit()
        }
        try wait(agent) { try isPublished(store) && (!exports || isExported(store)) }
        let before = try ProcessUse.cpuSeconds(agent)
        var cost = Cost(published: 0, exported: nil, processor: 0, memory: 0)
        let begin = ContinuousClock.now
        for index in 1...transactionCount { try insert(index) }
        func rate() -> Double { Double(transactionCount) / ((ContinuousClock.now - begin) / .seconds(1)) }
        try wait(agent) { try isPublished(store) }
        cost.published = rate()
        if exports {
            try wait(agent) { try isExported(store) }
            cost.exported = rate()
        }
        cost.processor = (try ProcessUse.cpuSeconds(agent) - before) / Double(transactionCount) * 1e6
        cost.memory = try ProcessUse.megabytes(agent, "VmHWM")
        try store.close()
        return cost
    }

    private func start(_ martlet: String, _ bootstrap: String, _ path: String, exports: Bool) throws -> Process {
        let configuration = """
            store:
              path: "\(path)"
            kafka:
              bootstrapServers: ["\(bootstrap)"]
              topic: "\(try Broker.makeTopic(bootstrap))"
            export:
              prefix: \(exports ? "\(Self.prefix)-\(UUID().uuidString.prefix(8).lowercased())" : "null")
            log:
              level: error
            """
        let file = "\(path).yaml"
        try configuration.write(toFile: file, atomically: true, encoding: .utf8)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: martlet)
        process.arguments = ["run", "--config", file]
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        return process
    }

    private func wait(_ agent: Process, until condition: () throws -> Bool) throws {
        while try !condition() {
            guard agent.isRunning else { throw Failure("The agent ended.") }
            usleep(2000)
        }
    }

    private func isPublished(_ store: Store) throws -> Bool { try SyncStatus.read(store).unpublished == 0 }

    private func isExported(_ store: Store) throws -> Bool {
        guard let last = try store.lastToken() else { return true }
        return try store.cursors().contains { $0.name.hasPrefix("martlet.export.\(Self.prefix)") && $0.token >= last }
    }
}
