import ArgumentParser
import Foundation
import MartletCore
import MartletSimulator
import Synchronization

/// The simulator as a program of its own, so that the agent's binary doesn't carry it. `martlet simulate` runs it.
@main
struct Simulate: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "martlet simulate",
        abstract: "Simulate nodes, files and a topic, with faults that a seed determines, and check every guarantee.",
        discussion: """
            Runs in one process, without a broker. If a seed fails, the simulator shrinks it and prints the command \
            that repeats it.
            Faults: \(Fault.allCases.map(\.rawValue).joined(separator: ", ")). Off by default: \
            \(Set(Fault.allCases).subtracting(Fault.standard).sorted().map(\.rawValue).joined(separator: ", ")). \
            A list may also have "default", "all" and "none".
            """)

    @Option(help: ArgumentHelp("Run these seeds. (default: 1-100)", valueName: "first-last"))
    var seeds: String?
    @Option(help: "Run one seed.")
    var seed: UInt64?
    @Option(help: "How many nodes. (default: 3; with generated tables 2 to 5, as the seed decides)")
    var nodes: Int?
    @Option(help: "How many steps each seed takes before faults stop.")
    var steps = SimulationOptions().stepCount
    @Option(help: ArgumentHelp("The faults to inject, comma-separated. (default: default)", valueName: "list"))
    var faults: String?
    @Option(
        help: "Use these tables: an SQLite file, or an SQL script such as `sqlite3 FILE .schema` prints.",
        completion: .file())
    var schema: String?
    @Option(
        help: ArgumentHelp(
            "Which tables: Martlet's own, generated from the seed, or one or the other by seed. (default: fixed)",
            valueName: "fixed|generated|mixed"))
    var workload: String?
    @Option(
        help: ArgumentHelp(
            "What generated tables and statements may have, comma-separated; -NAME removes one from the default.",
            valueName: "list"))
    var features: String?
    @Option(help: ArgumentHelp("Leave out these parts of the schema, by number.", valueName: "list"))
    var without: String?
    @Option(help: ArgumentHelp("Leave out these statements, by number.", valueName: "list"))
    var withoutStatements: String?
    @Option(help: ArgumentHelp("Run only these steps of the seed, by number.", valueName: "list"))
    var keep: String?
    @Flag(help: "Let the nodes encrypt what they send.")
    var sealed = false
    @Option(help: "How many seeds run at once.")
    var threads = 2
    @Option(help: "Stop after this many failing seeds.")
    var failures = 10
    @Flag(inversion: .prefixedNo, help: "Reduce failing seeds to the steps and parts that they need to fail.")
    var shrink = true
    @Flag(help: "Print what happens, step by step.")
    var trace = false
    @Flag(help: "With --trace: print also the warnings and errors that the nodes log.")
    var log = false
    @Flag(help: "Print JSON, for programs.")
    var json = false

    func run() throws {
        let simulator: Simulator
        do {
            simulator = try Simulator(options: try options())
        } catch let error as StoreError {
            throw ValidationError(error.description)
        }
        let range = try range()
        let begin = ContinuousClock.now
        let failed = Mutex<[SimulationReport]>([])
        let count = Mutex((seeds: 0, transactions: 0))
        simulator.run(seeds: range, threads: range.count == 1 ? 1 : max(1, threads)) { report in
            count.withLock {
                $0.seeds += 1
                $0.transactions += report.transactionCount
            }
            if trace { show(report) }
            if json { printObject(report) }
            guard let failure = report.failure else { return true }
            if failure.check == .stalled {
                // The stalled thread can't be stopped.
                if !json {
                    print("seed \(report.seed) failed: \(failure)\nagain: \(report.command(schemaFile: schema))")
                }
                Foundation.exit(1)
            }
            if !shrink, !trace, !json {
                print("seed \(report.seed) failed: \(failure)\nagain: \(report.command(schemaFile: schema))")
            }
            failed.withLock { $0.append(report) }
            return failed.withLock { $0.count < failures }
        }
        let seconds = (ContinuousClock.now - begin) / .seconds(1)
        let done = count.withLock { $0 }
        let all = failed.withLock { $0 }.sorted { $0.seed < $1.seed }
        for report in all where !json && (shrink || trace) { explain(report, simulator) }
        if !json {
            let rate = String(format: "%.1f", Double(done.seeds) / max(0.001, seconds))
            print(
                """
                \(done.seeds) seeds, \(done.transactions) transactions, \(all.count) failed; \
                \(String(format: "%.1f", seconds)) s, \(rate) seeds a second
                """)
        }
        if !all.isEmpty { throw ExitCode(1) }
    }

    private func explain(_ report: SimulationReport, _ simulator: Simulator) {
        guard let failure = report.failure else { return }
        print("seed \(report.seed) failed: \(failure)")
        // A simulation that was requested by its steps is not shrunk any further.
        let short = keep == nil && shrink ? simulator.shrink(report) : report
        if shrink, !trace || keep == nil { for line in short.trace { print("  \(line)") } }
        print("again, with \(short.steps.count) of \(report.steps.count) steps: \(short.command(schemaFile: schema))")
    }

    private func show(_ report: SimulationReport) {
        print("seed \(report.seed)")
        for line in report.trace { print("  \(line)") }
        print("seed \(report.seed): \(report.failure.map(\.description) ?? "passed"), trace \(report.hash)")
    }

    /// Prints a seed as JSON. The keys are part of the command's contract.
    private func printObject(_ report: SimulationReport) {
        let object: [String: Any] = [
            "seed": Int64(bitPattern: report.seed), "passed": report.failure == nil,
            "check": report.failure?.check.rawValue ?? NSNull(), "message": report.failure?.message ?? NSNull(),
            "hash": report.hash, "faults": report.faults.map(\.rawValue), "transactions": report.transactionCount,
            "command": report.command(schemaFile: schema),
        ]
        let options: JSONSerialization.WritingOptions = [.sortedKeys, .withoutEscapingSlashes]
        guard let line = try? JSONSerialization.data(withJSONObject: object, options: options) else { return }
        print(String(decoding: line, as: UTF8.self))
    }

    private func range() throws -> ClosedRange<UInt64> {
        if let seed { return seed...seed }
        let bounds = (seeds ?? "1-100").split(separator: "-", omittingEmptySubsequences: false).map { UInt64($0) }
        guard bounds.count == 2, let first = bounds[0], let last = bounds[1], first <= last else {
            throw ValidationError("--seeds must be first-last, for example 1-1000.")
        }
        return first...last
    }

    private func options() throws -> SimulationOptions {
        var options = SimulationOptions()
        options.nodeCount = nodes
        options.stepCount = steps
        options.showsLogs = log
        options.isSealed = sealed
        if let faults {
            options.faults = try faults.split(separator: ",").reduce(into: Set<Fault>()) { faults, name in
                switch name {
                case "none": break
                case "default": faults.formUnion(Fault.standard)
                case "all": faults.formUnion(Fault.allCases)
                default:
                    guard let fault = Fault(rawValue: String(name)) else {
                        throw ValidationError(
                            """
                            There is no fault \(name). The faults are \
                            \(Fault.allCases.map(\.rawValue).joined(separator: ", ")).
                            """
                        )
                    }
                    faults.insert(fault)
                }
            }
        }
        if let schema {
            do {
                options.schema = try SchemaFile.script(at: schema)
            } catch let error as StoreError {
                throw ValidationError(error.description)
            }
        }
        if let workload {
            let all = SimulationOptions.Workload.allCases.map(\.rawValue)
            guard let known = SimulationOptions.Workload(rawValue: workload) else {
                throw ValidationError("There is no workload \(workload). Choose one of \(all.joined(separator: ", ")).")
            }
            options.workload = known
        }
        if let features {
            guard let known = FeatureList.features(features) else {
                let all = SchemaFeature.allCases.map(\.rawValue).joined(separator: ", ")
                throw ValidationError("--features \(features): must be \"all\", \"default\", or some of \(all).")
            }
            options.features = known
        }
        if let keep { options.kept = try numbers(keep, "--keep") }
        if let without { options.withoutParts = try numbers(without, "--without") }
        if let withoutStatements {
            options.withoutStatements = try numbers(withoutStatements, "--without-statements")
        }
        return options
    }

    private func numbers(_ list: String, _ option: String) throws -> [Int] {
        guard let numbers = StepList.numbers(list) else {
            throw ValidationError("\(option) \(list): must be numbers, for example 3,7-9.")
        }
        return numbers
    }
}
