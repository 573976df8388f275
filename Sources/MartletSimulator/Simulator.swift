import Dispatch
package import GRDB
import MartletStore
import Synchronization

/// Runs nodes, their files and a topic in one process, with clock, network and failures determined by a seed.
///
/// Stores, publisher, consumer and merge are the real ones. After every step, and once faults have stopped, all of
/// Martlet's guarantees are checked; see docs/simulator.md. Blocks the calling thread.
public struct Simulator: Sendable {
    public let options: SimulationOptions
    private typealias Tables = (schema: SimulatedSchema, template: StoreTemplate)
    /// Martlet's own schemas, of which each seed uses one.
    private let companies: [Tables]
    /// The user's schema. Nil if there is none.
    private let own: Tables?
    private let folder: SimulationFolder
    private let stalls: StallWatch
    /// Breaks the broker, for tests of the simulator.
    package var tamper: Tamper?
    /// Changes the first node's knowledge of its tables, so that it merges differently from all others, for tests of
    /// the simulator.
    package var sabotage: (@Sendable (Database) throws -> Void)?

    /// - Parameter stallLimit: the processor time that one step may use, and a tenth of the time that it may wait. A
    ///   run that exceeds it is reported as failed, but can't be stopped.
    /// - Throws: ``/MartletCore/StoreError`` if the options are invalid, or the schema can't be created or tracked.
    public init(options: SimulationOptions = SimulationOptions(), stallLimit: Duration = .seconds(60)) throws {
        try self.init(options: options, stalls: StallWatch(limit: stallLimit))
    }

    package init(options: SimulationOptions, stalls: StallWatch) throws {
        self.stalls = stalls
        let problems = options.validate()
        guard problems.isEmpty else {
            throw StoreError(.invalidArgument, "Invalid simulation options: \(problems.joined(separator: "; ")).")
        }
        try Machine.install()
        self.options = options
        let folder = try SimulationFolder()
        self.folder = folder
        own = try options.schema.map { sql in
            let schema = SimulatedSchema(sql: sql, without: options.withoutParts)
            return (schema, try StoreTemplate(schema, path: folder.path + "/own.sqlite"))
        }
        let isFixed = options.schema == nil && options.workload != .generated
        companies = try (isFixed ? SimulatedSchema.companies : []).enumerated().map { number, schema in
            (schema, try StoreTemplate(schema, path: folder.path + "/template\(number).sqlite"))
        }
    }

    /// - Parameter path: where to create a store that only this seed needs.
    private func tables(_ seed: UInt64, _ options: SimulationOptions, path: String) throws -> Tables {
        let made: SimulatedSchema
        if let own, let sql = options.schema {
            guard options.withoutParts != self.options.withoutParts else { return own }
            made = SimulatedSchema(sql: sql, without: options.withoutParts)
        } else if options.workload == .generated || (options.workload == .mixed && Self.isGenerated(seed)) {
            var generator = SchemaGenerator(seed: seed, features: options.features)
            made = generator.schema(without: options.withoutParts)
        } else {
            var chance = SplitMix(seed: seed)
            return chance.pick(companies)
        }
        return (made, try StoreTemplate(made, path: path))
    }

    private static func isGenerated(_ seed: UInt64) -> Bool { seed % 2 == 0 }

    /// Runs one seed.
    public func run(seed: UInt64) -> SimulationReport { run(seed: seed, options) }

    func run(seed: UInt64, _ options: SimulationOptions) -> SimulationReport {
        do {
            let made = try SimulationFolder()
            let (schema, template) = try tables(seed, options, path: made.path + "/template.sqlite")
            let simulation = try Simulation(
                seed: seed, options: options, schema: schema, template: template, tamper: tamper, stalls: stalls,
                sabotage: sabotage)
            defer { stalls.end(seed) }
            return simulation.run()
        } catch {
            var report = SimulationReport(seed: seed, options: options)
            report.failure = SimulationFailure(.schema, "the simulation can't begin: \(error)")
            return report
        }
    }

    /// Runs many seeds, several at a time.
    ///
    /// - Parameters:
    ///   - threads: the number of seeds that run at once, each on a thread of its own.
    ///   - each: receives each report, on any thread. Return false to start no further seed. If a seed stalls, it
    ///     receives a failed report for it, and this method does not return: exit the process.
    public func run(
        seeds: ClosedRange<UInt64>, threads: Int = 2, each: @escaping @Sendable (SimulationReport) -> Bool
    ) {
        let next = Mutex<UInt64?>(seeds.lowerBound)
        let timer = stalls.watch { [options] seed, step in
            var report = SimulationReport(seed: seed, options: options)
            report.failure = SimulationFailure(.stalled, "a step does not end: \(step)")
            _ = each(report)
            next.withLock { $0 = nil }
        }
        defer { timer.cancel() }
        DispatchQueue.concurrentPerform(iterations: max(1, threads)) { _ in
            while true {
                let seed = next.withLock { next -> UInt64? in
                    guard let seed = next else { return nil }
                    next = seed < seeds.upperBound ? seed + 1 : nil
                    return seed
                }
                guard let seed else { return }
                if !each(run(seed: seed)) { next.withLock { $0 = nil } }
            }
        }
    }

    /// Leaves out steps, statements and parts of the schema of a failed run as long as it still fails the same check.
    ///
    /// - Parameter limit: how long to try.
    /// - Returns: the shortest failing run that was found, whose ``SimulationReport/command(schemaFile:)`` repeats it.
    public func shrink(_ report: SimulationReport, limit: Duration = .seconds(60)) -> SimulationReport {
        Shrinker(deadline: .now + limit) { options in run(seed: report.seed, options) }.shrink(report)
    }
}
