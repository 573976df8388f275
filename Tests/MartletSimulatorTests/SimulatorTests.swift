import Dispatch
import MartletSimulator
import MartletSync
import Synchronization
import Testing

@Suite struct SimulatorTests {
    @Test func fiveHundredSmallSeedsKeepEveryPromise() throws {
        var options = SimulationOptions()
        options.nodeCount = 2
        options.stepCount = 12
        options.faults.remove(.upgrade)
        try expectPromises(options, seeds: 1...500)
    }

    @Test func largerSeedsWithMigrationsKeepEveryPromise() throws {
        var options = SimulationOptions()
        options.stepCount = 40
        try expectPromises(options, seeds: 1...30)
    }

    @Test func seedsWhoseNodesSealWhatTheySendKeepEveryPromise() throws {
        var options = SimulationOptions()
        options.stepCount = 25
        options.faults.remove(.upgrade)
        options.isSealed = true
        try expectPromises(options, seeds: 1...60)
        let simulator = try Simulator(options: options)
        #expect(simulator.run(seed: 1001).hash == simulator.run(seed: 1001).hash)
    }

    private func expectPromises(_ options: SimulationOptions, seeds: ClosedRange<UInt64>) throws {
        let simulator = try Simulator(options: options)
        let failures = Mutex<[String]>([])
        let count = Mutex(0)
        simulator.run(seeds: seeds) { report in
            count.withLock { $0 += 1 }
            if let failure = report.failure { failures.withLock { $0.append("\(failure)\n\(report.command())") } }
            return failures.withLock { $0.count < 5 }
        }
        #expect(failures.withLock { $0 } == [])
        #expect(count.withLock { $0 } == seeds.count)
    }

    @Test func aSeedGivesTheSameTraceTwice() throws {
        let simulator = try Simulator()
        for seed in 1001...1004 as ClosedRange<UInt64> {
            let first = simulator.run(seed: seed)
            #expect(first.failure == nil)
            #expect(first.transactionCount > 0)
            let second = simulator.run(seed: seed)
            #expect(second.trace == first.trace)
            #expect(second.hash == first.hash)
        }
        #expect(simulator.run(seed: 1001).hash != simulator.run(seed: 1002).hash)
    }

    /// One message may get lost: that is noticed, and it is sent again. This broker loses it each time.
    @Test func aBrokerThatAlwaysLosesAMessageIsFoundAndTheRunIsShrunk() throws {
        var options = SimulationOptions()
        options.faults = []
        options.stepCount = 50
        var simulator = try Simulator(options: options)
        simulator.tamper = { message, _ in
            message.headers.contains(MessageHeader("martlet-sequence", "2")) ? nil : message
        }
        let report = simulator.run(seed: 7)
        let check = try #require(report.failure?.check)
        let short = simulator.shrink(report)
        #expect(short.failure?.check == check)
        // Each write is published in the end anyway.
        #expect(short.steps.count <= 4, "\(short.trace)")
        #expect(short.trace.last?.contains("FAILED") == true)
        #expect(
            short.command()
                == "martlet simulate --seed 7 --steps 50 --faults none --keep \(StepList.text(short.steps)) --trace")
        options.kept = short.steps
        var again = try Simulator(options: options)
        again.tamper = simulator.tamper
        #expect(again.run(seed: 7).trace == short.trace)
    }

    @Test func aBrokerThatChangesMessagesIsFound() throws {
        var options = SimulationOptions()
        options.faults = []
        var simulator = try Simulator(options: options)
        simulator.tamper = { message, _ in
            guard message.headers.contains(MessageHeader("martlet-sequence", "2")) else { return message }
            var message = message
            message.headers.removeAll { $0.name == "martlet-crc32" }
            message.payload.removeLast()
            return message
        }
        #expect(simulator.run(seed: 8).failure != nil)
    }

    @Test func aStepWithoutEndIsReported() throws {
        var options = SimulationOptions()
        options.faults = []
        var simulator = try Simulator(options: options, stallLimit: .milliseconds(10))
        let gate = DispatchSemaphore(value: 0)
        simulator.tamper = { message, _ in
            gate.wait()
            gate.signal()
            return message
        }
        let failures = Mutex<[SimulationFailure?]>([])
        simulator.run(seeds: 3...3, threads: 1) { report in
            failures.withLock { $0.append(report.failure) }
            if report.failure?.check == .stalled { gate.signal() }
            return true
        }
        // A slow machine has other steps that take so long.
        let checks = failures.withLock { $0.map { $0?.check } }
        #expect(checks.count >= 2 && checks.dropLast().allSatisfy { $0 == .stalled } && checks.last == .some(nil))
    }

    @Test func tablesOfAUsersOwnAreSimulated() throws {
        var options = SimulationOptions()
        options.schema = """
            CREATE TABLE album(id INTEGER PRIMARY KEY, title TEXT NOT NULL, year INTEGER CHECK (year < 900));
            CREATE TABLE track(album INTEGER NOT NULL REFERENCES album(id) ON DELETE CASCADE, number INTEGER NOT NULL,
              length REAL, PRIMARY KEY(album, number));
            INSERT INTO album(title) VALUES ('first'), ('second');
            """
        let simulator = try Simulator(options: options)
        for seed in 1...10 as ClosedRange<UInt64> {
            let report = simulator.run(seed: seed)
            #expect(report.failure == nil, "\(report.command(schemaFile: "FILE"))")
        }
    }

    /// The names of what they write must not be confused.
    @Test func moreNodesThanLettersKeepEveryPromise() throws {
        var options = SimulationOptions()
        options.nodeCount = 40
        options.stepCount = 120
        options.faults = [.crash, .reordering]
        try expectPromises(options, seeds: 1...1)
    }

    @Test func optionsThatCannotBeAreRefused() {
        var options = SimulationOptions()
        options.nodeCount = 1
        #expect(throws: (any Error).self) { try Simulator(options: options) }
        options = SimulationOptions()
        options.schema = "CREATE TABLE broken("
        #expect(throws: (any Error).self) { try Simulator(options: options) }
    }

    @Test(arguments: [[], [1], [1, 2, 3], [0, 2, 3, 9]]) func listsOfStepsAreReadAsTheyAreWritten(steps: [Int]) {
        #expect(StepList.numbers(StepList.text(steps)) == steps)
        #expect(StepList.numbers("3-1") == nil)
        #expect(StepList.numbers("a") == nil)
        #expect(StepList.numbers("1,,2") == nil)
    }
}
