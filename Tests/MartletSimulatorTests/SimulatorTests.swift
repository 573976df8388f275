import Dispatch
import Foundation
import GRDB
import MartletSimulator
import MartletStore
import MartletSync
import MartletTestSupport
import Synchronization
import Testing

@Suite struct SimulatorTests {
    @Test func fiveHundredSmallSeedsKeepEveryGuarantee() throws {
        var options = SimulationOptions()
        options.nodeCount = 2
        options.stepCount = 12
        options.faults.remove(.upgrade)
        try expectGuarantees(options, seeds: 1...500)
    }

    @Test func largerSeedsWithMigrationsKeepEveryGuarantee() throws {
        var options = SimulationOptions()
        options.stepCount = 40
        try expectGuarantees(options, seeds: 1...30)
    }

    @Test func seedsWithEncryptedPayloadsKeepEveryGuarantee() throws {
        var options = SimulationOptions()
        options.stepCount = 25
        options.faults.remove(.upgrade)
        options.isSealed = true
        try expectGuarantees(options, seeds: 1...60)
        let simulator = try Simulator(options: options)
        #expect(simulator.run(seed: 1001).hash == simulator.run(seed: 1001).hash)
    }

    private func expectGuarantees(_ options: SimulationOptions, seeds: ClosedRange<UInt64>) throws {
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

    /// Whichever of the two was put in front of SQLite's files first.
    @Test func theClockOfTestsLeavesSimulatedThreadsAlone() throws {
        SQLiteClock.install()
        try Machine.install()
        let queue = try DatabaseQueue()
        Machine.setTime(12_345)
        defer { Machine.leave() }
        let time = try queue.read { try Int64.fetchOne($0, sql: "SELECT \(CaptureTriggers.now)") }
        #expect(time == 12_345)
    }

    @Test func aSeedReproducesItsTrace() throws {
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

    /// A node notices a lost message, and republishes it. This broker loses the message each time.
    @Test func theSimulatorFindsABrokerThatLosesAMessageAndShrinksTheRun() throws {
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
        // The end of a run publishes each write anyway.
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

    @Test func theSimulatorFindsABrokerThatChangesMessages() throws {
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
        // Nodes can't decode the message, and quarantine it.
        #expect(simulator.run(seed: 8).failure?.check == .quarantine)
        simulator.tamper = { message, _ in message }
        #expect(simulator.run(seed: 8).failure == nil)
    }

    @Test func aStepThatNeverEndsIsReported() throws {
        var options = SimulationOptions()
        options.faults = []
        // The clock stands still until the step in question blocks: even on a slow machine no other step takes any
        // time.
        let start = ContinuousClock.now
        let clock = Mutex(start)
        var simulator = try Simulator(
            options: options, stalls: StallWatch(limit: .seconds(60), now: { clock.withLock { $0 } }))
        let gate = DispatchSemaphore(value: 0)
        simulator.tamper = { message, _ in
            clock.withLock { $0 = start + .seconds(601) }
            // If the step is not reported, nothing opens the gate.
            _ = gate.wait(timeout: .now() + 60)
            gate.signal()
            return message
        }
        let failures = Mutex<[SimulationFailure?]>([])
        simulator.run(seeds: 3...3, threads: 1) { report in
            failures.withLock { $0.append(report.failure) }
            if report.failure?.check == .stalled { gate.signal() }
            return true
        }
        #expect(failures.withLock { $0.map { $0?.check } } == [.stalled, nil])
    }

    @Test func aStepIsStalledOnceItUsesMoreProcessorTimeThanTheLimit() {
        let used = Mutex<[Duration]>([.zero, .zero])
        let next = Mutex(0)
        let watch = StallWatch(
            limit: .seconds(60),
            processor: {
                // Each step has a thread of its own here.
                let thread = next.withLock { next in
                    defer { next += 1 }
                    return next % 2
                }
                return { used.withLock { $0[thread] } }
            })
        watch.begin(1, step: "a")
        watch.begin(2, step: "b")
        used.withLock { $0 = [.seconds(60), .seconds(60)] }
        #expect(watch.stalled().isEmpty)
        used.withLock { $0[0] += .seconds(1) }
        #expect(watch.stalled().map(\.step) == ["a"])
        #expect(watch.stalled().isEmpty)
        watch.begin(1, step: "c")
        used.withLock { $0[0] += .seconds(60) }
        #expect(watch.stalled().isEmpty)
        watch.end(2)
        used.withLock { $0 = [.seconds(121), .seconds(600)] }
        #expect(watch.stalled().isEmpty)
    }

    /// On a busy machine, a step may take long and use little processor time.
    @Test func aStepThatWaitsIsStalledOnlyAfterTenTimesTheLimit() {
        let start = ContinuousClock.now
        let clock = Mutex(start)
        let watch = StallWatch(
            limit: .seconds(60), now: { clock.withLock { $0 } }, processor: { { .zero } })
        watch.begin(1, step: "a")
        clock.withLock { $0 += .seconds(600) }
        #expect(watch.stalled().isEmpty)
        clock.withLock { $0 += .seconds(1) }
        #expect(watch.stalled().map(\.step) == ["a"])
    }

    @Test func theProcessorClockOfAThreadMovesOnWithItsWork() {
        let clock = StallWatch.processorClock()
        let before = clock()
        while clock() == before {}
        #expect(clock() > before)
    }

    @Test func theSimulatorRunsAUsersSchema() throws {
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

    /// A user's schema: a database file, or the output of the sqlite3 shell.
    private static let ownFile = """
        CREATE TABLE album(id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL, note TEXT DEFAULT 'a;b(');
        CREATE TABLE "odd (name"(k TEXT PRIMARY KEY, album INTEGER REFERENCES album(id)) WITHOUT ROWID;
        CREATE INDEX album_title ON album(title);
        CREATE VIEW titles AS SELECT title FROM album;
        CREATE TABLE counter(name TEXT PRIMARY KEY, n INTEGER NOT NULL);
        CREATE TRIGGER counts AFTER INSERT ON album BEGIN UPDATE counter SET n = n + 1 WHERE name = 'album'; END;
        INSERT INTO album(title) VALUES ('first');
        ANALYZE;
        """
    private static let ownVirtual = """
        CREATE VIRTUAL TABLE album_fts USING fts5(title, content='album', content_rowid='id');
        CREATE VIRTUAL TABLE place USING rtree(id, x0, x1);
        """

    @Test(arguments: [false, true]) func p64TheSimulatorRunsASchemaDumpAndTheFileItself(
        isVacuumed: Bool
    ) throws {
        let folder = try TemporaryFolder()
        let file = folder.path("own.sqlite")
        try ForeignProgram.shell.run(Self.ownFile + (isVacuumed ? "VACUUM;" : ""), on: file)
        let printed = try ForeignProgram.launch("sqlite3", [file, ".schema"], input: "")
        #expect(printed.contains("CREATE TABLE sqlite_sequence") && printed.contains("CREATE TABLE sqlite_stat1"))
        let script = folder.path("own.sql")
        try printed.write(toFile: script, atomically: true, encoding: .utf8)
        for path in [script, file] {
            var options = SimulationOptions()
            options.schema = try SchemaFile.script(at: path)
            let simulator = try Simulator(options: options)
            for seed in 1...3 as ClosedRange<UInt64> {
                let report = simulator.run(seed: seed)
                #expect(report.failure == nil, "\(report.command(schemaFile: path))")
            }
        }
    }

    @Test(arguments: [false, true]) func p64ASchemaMayHaveVirtualTables(isVacuumed: Bool) throws {
        let folder = try TemporaryFolder()
        let file = folder.path("own.sqlite")
        try ForeignProgram.shell.run(Self.ownFile + Self.ownVirtual + (isVacuumed ? "VACUUM;" : ""), on: file)
        let script = folder.path("own.sql")
        try ForeignProgram.launch("sqlite3", [file, ".schema"], input: "")
            .write(toFile: script, atomically: true, encoding: .utf8)
        for (number, path) in [script, file].enumerated() {
            let store = try Store.create(path: folder.path("made\(number).sqlite"))
            try store.database.writeWithoutTransaction { try $0.execute(sql: try SchemaFile.script(at: path)) }
            let made = try store.database.read { db in
                try String.fetchAll(
                    db, sql: "SELECT name FROM sqlite_schema WHERE type = 'table'")
            }
            let expected = ["album", "odd (name", "counter", "album_fts", "album_fts_data", "place_node"]
            #expect(Set(made).isSuperset(of: expected))
            try store.close()
            var options = SimulationOptions()
            options.schema = try SchemaFile.script(at: path)
            _ = try Simulator(options: options)
        }
    }

    /// Only tables that SQLite creates by itself are omitted.
    @Test func p64AScriptIsOtherwiseCompletelyKept() throws {
        let script = """
            CREATE TABLE place_node(id INTEGER PRIMARY KEY, v TEXT CHECK(v <> ')'));
            CREATE TABLE "sqlite seq"(a, b);
            INSERT INTO place_node VALUES (1, 'CREATE TABLE sqlite_sequence(name,seq);');
            """
        #expect(SchemaFile.script(of: script) == script)
        #expect(SchemaFile.script(of: "create table sqlite_sequence(name,seq);\n" + script) == "\n" + script)
    }

    @Test func p64AnUnreadableFileIsReported() throws {
        let folder = try TemporaryFolder()
        let missing = #expect(throws: StoreError.self) { try SchemaFile.script(at: folder.path("none.sql")) }
        #expect(missing?.code == .invalidArgument && missing?.message.contains("none.sql") == true)
        let cut = folder.path("cut.sqlite")
        try Data("SQLite format 3\0and then nothing of a database".utf8).write(to: URL(fileURLWithPath: cut))
        let damaged = #expect(throws: StoreError.self) { try SchemaFile.script(at: cut) }
        #expect(damaged?.code == .invalidArgument && damaged?.message.contains("cut.sqlite") == true)
        let binary = folder.path("binary.sql")
        try Data([0xff, 0xfe, 0x00]).write(to: URL(fileURLWithPath: binary))
        let other = #expect(throws: StoreError.self) { try SchemaFile.script(at: binary) }
        #expect(other?.message.contains("UTF-8") == true)
    }

    /// The names of their rows must not be confused.
    @Test func moreNodesThanLettersKeepEveryGuarantee() throws {
        var options = SimulationOptions()
        options.nodeCount = 40
        options.stepCount = 120
        options.faults = [.crash, .reordering]
        try expectGuarantees(options, seeds: 1...1)
    }

    @Test func theSimulatorRefusesInvalidOptions() {
        var options = SimulationOptions()
        options.nodeCount = 1
        let error = #expect(throws: StoreError.self) { try Simulator(options: options) }
        #expect(error?.message.contains("nodes: 1 must be between") == true)
        options = SimulationOptions()
        options.schema = "CREATE TABLE broken("
        let refusal = #expect(throws: DatabaseError.self) { try Simulator(options: options) }
        #expect(refusal?.resultCode == .SQLITE_ERROR && refusal?.sql?.contains("broken(") == true)
    }

    @Test(arguments: [[], [1], [1, 2, 3], [0, 2, 3, 9]]) func listsOfStepsSurviveARoundTrip(steps: [Int]) {
        #expect(StepList.numbers(StepList.text(steps)) == steps)
        #expect(StepList.numbers("3-1") == nil)
        #expect(StepList.numbers("a") == nil)
        #expect(StepList.numbers("1,,2") == nil)
    }
}
