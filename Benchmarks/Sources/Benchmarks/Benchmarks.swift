import ArgumentParser
import Foundation
import MartletSync

/// Compares Martlet with plain C on the same libraries, the same machine, in the same run.
@main struct Benchmarks: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "benchmarks",
        abstract: "Compares Martlet with plain C doing the same work on the same libraries.",
        discussion: """
            Figures are the medians of repetitions in which baseline and Martlet take turns. Only ratios within one \
            run mean anything: absolute rates are those of this machine at this moment.
            """)

    enum Name: String, CaseIterable, ExpressibleByArgument {
        case localInsert = "local-insert"
        case publishBacklog = "publish-backlog"
        case applyBacklog = "apply-backlog"
        case largeTransaction = "large-transaction"
        case transactionMemory = "transaction-memory"
        case latency
        case idle
        case models
        case growth
        case bootstrap
        case export
        case overhead
    }

    @Flag(help: "A short run: fewer rows and repetitions.")
    var quick = false

    @Option(help: "Run only this benchmark; may be given several times.")
    var only: [Name] = []

    @Flag(help: "Print one JSON object instead of tables.")
    var json = false

    @Option(help: "Repetitions of each comparison. Default: 5, or 3 with --quick.")
    var repetitions: Int?

    @Option(help: "SQLite's settings on both sides: Martlet's own, or those that Debian's SQLite has by default.")
    var settings: Settings = .martlet

    @Option(help: "How the tables are keyed; may be given several times. Default: both ways.")
    var keying: [Keying] = []

    @Option(
        help: """
            How many rows the stores of `growth` and `bootstrap` have, and the transactions of `transaction-memory`; \
            may be given several times. Default: 10000 and 1000000, or 100000 with --quick; `bootstrap` has only the \
            larger one.
            """)
    var rows: [Int] = []

    @Option(
        help: """
            How many changes the transactions of `apply-backlog` have; may be given several times. Default: 1, 10 and \
            100.
            """)
    var changes: [Int] = []

    @Option(help: "A Kafka broker, as host:port. Default: one is started with scripts/test-broker.sh.")
    var bootstrap: String?

    @Option(help: "The martlet binary, for the benchmarks `idle` and `export`.")
    var martlet: String?

    @Option(help: "Where the databases are made. Default: the temporary directory.")
    var directory: String?

    @Flag(
        name: .customLong("cpu"),
        help:
            "Compare processor time instead of elapsed time, for where other programs compete. Not for a broker's work."
    )
    var comparesProcessorTime = false

    @Option(help: .hidden)
    var memoryOf: String?

    @Option(help: .hidden)
    var memoryCount = 0

    @Option(help: .hidden)
    var memoryBatch = 500

    @Option(help: .hidden)
    var end: TransactionMemory.End?

    @Option(help: .hidden)
    var endStore = ""

    @Option(help: .hidden)
    var endTopic = ""

    @Option(help: .hidden)
    var register: String?

    func validate() throws {
        if let repetitions, repetitions < 1 { throw ValidationError("--repetitions must be at least 1.") }
        if let size = rows.first(where: { $0 < 1000 }) {
            throw ValidationError("--rows \(size): at least 1000, or nothing can be measured.")
        }
        if let size = changes.first(where: { !(1...100).contains($0) }) {
            throw ValidationError("--changes \(size): from 1 to 100.")
        }
    }

    func run() throws {
        let run = try Run(
            isQuick: quick, repetitions: repetitions ?? (quick ? 3 : 5), settings: settings,
            keyings: keying.isEmpty ? Keying.allCases : keying,
            directory: directory ?? NSTemporaryDirectory(),
            clock: comparesProcessorTime ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, report: Report(isJSON: json))
        defer { run.cleanUp() }
        if let memoryOf {
            return try ApplyBacklog.measureMemory(run, source: memoryOf, count: memoryCount, batch: memoryBatch)
        }
        if let end { return try TransactionMemory.measure(end, run, store: endStore, topic: endTopic) }
        if let register {
            let engine = try SyncEngine(path: register, store: run.settings.store)
            print(try seconds { _ = try engine.apply([], topic: "none") })
            return try engine.close()
        }
        run.report.begin(run)
        let wanted = only.isEmpty ? Name.allCases : only
        let broker = Broker(given: bootstrap)
        defer { broker.stop() }
        for name in wanted {
            run.report.begin(name.rawValue)
            switch name {
            case .localInsert: try LocalInsert(run: run).measure()
            case .applyBacklog:
                try ApplyBacklog(run: run).measure(changes: changes.isEmpty ? [1, 10, 100] : changes)
            case .largeTransaction: try LargeTransaction(run: run).measure()
            case .transactionMemory:
                let sizes = rows.isEmpty ? [10_000, quick ? 100_000 : 1_000_000] : rows
                try TransactionMemory(run: run, sizes: sizes).measure()
            case .publishBacklog: try PublishBacklog(run: run, broker: broker).measure()
            case .latency: try Latency(run: run, broker: broker).measure()
            case .idle: try Idle(run: run, martlet: martlet, bootstrap: bootstrap).measure()
            case .models: try ModelWork(run: run).measure()
            case .growth:
                try Growth(run: run, sizes: rows.isEmpty ? [10_000, quick ? 100_000 : 1_000_000] : rows).measure()
            case .bootstrap:
                try Bootstrap(run: run, sizes: rows.isEmpty ? [quick ? 100_000 : 1_000_000] : rows).measure()
            case .export: try ExportOverhead(run: run, broker: broker, martlet: martlet).measure()
            case .overhead: try Overhead(run: run).measure()
            }
        }
        try run.report.end()
    }
}
