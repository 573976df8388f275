import GRDB
import MartletSimulator
import MartletStore
import MartletSync
import MartletTestSupport
import Synchronization
import Testing

/// Schemas and statements that a seed generates.
@Suite struct GeneratedSchemaTests {
    @Test func p63GeneratedSeedsKeepEveryGuarantee() throws {
        var options = SimulationOptions()
        options.workload = .generated
        options.stepCount = 30
        let simulator = try Simulator(options: options)
        let failures = Mutex<[String]>([])
        simulator.run(seeds: 1...60) { report in
            guard Self.known[report.seed] == nil else { return true }
            if let failure = report.failure { failures.withLock { $0.append("\(failure)\n\(report.command())") } }
            return true
        }
        let found = failures.withLock { $0 }
        #expect(found.isEmpty, "\(found.joined(separator: "\n"))")
    }

    /// Two steps of a seed after which consuming never ended: a row without its reference displaced, when it received
    /// the reference, the row that had brought it. (Another version of the generator may no longer produce these
    /// steps.)
    @Test(.timeLimit(.minutes(5))) func p113ARowThatLosesItsKeyWithItsReferenceConverges() throws {
        var options = SimulationOptions()
        options.workload = .generated
        options.kept = [4, 45]
        #expect(try Simulator(options: options).run(seed: 954).failure == nil)
    }

    /// Seeds that fail because of a known fault, with its description. Normally empty: an entry stays until the fix.
    private static let known: [UInt64: String] = [:]

    /// Including the features that are off by default: otherwise nothing would generate a missing one.
    @Test func p63TheGeneratorProducesEveryFeature() throws {
        var used: Set<SchemaFeature> = []
        for seed in 1...600 as ClosedRange<UInt64> {
            var generator = SchemaGenerator(seed: seed, features: Set(SchemaFeature.allCases))
            let schema = generator.schema()
            used.formUnion(generator.used)
            // SQLite accepts each schema.
            let queue = try DatabaseQueue()
            try queue.inDatabase { try $0.execute(sql: schema.sql) }
        }
        #expect(Set(SchemaFeature.allCases).subtracting(used).subtracting(SchemaFeature.ofStatements) == [])
    }

    @Test func p63TheGeneratorOmitsADisabledFeature() throws {
        for feature in SchemaFeature.allCases {
            for seed in 1...30 as ClosedRange<UInt64> {
                var generator = SchemaGenerator(
                    seed: seed, features: Set(SchemaFeature.allCases).subtracting([feature]))
                _ = generator.schema()
                #expect(!generator.used.contains(feature), "\(feature) in seed \(seed)")
            }
        }
        var none = SchemaGenerator(seed: 1, features: [])
        #expect(none.schema().sql.contains("CREATE TABLE"))
    }

    private static let schema = """
        CREATE TABLE user(id INTEGER PRIMARY KEY, email TEXT NOT NULL COLLATE NOCASE UNIQUE, lo INT, hi INT,
          CHECK(lo<=hi));
        CREATE UNIQUE INDEX ue ON user(lower(email));
        CREATE TABLE item(sku TEXT PRIMARY KEY COLLATE NOCASE, owner INTEGER REFERENCES user(id) ON DELETE CASCADE);
        """

    /// The statements of each seed, which run one after the other on one database.
    private func statements(_ schema: String, seeds: ClosedRange<UInt64>) throws -> [[String]] {
        let queue = try DatabaseQueue()
        return try queue.inDatabase { db in
            try db.execute(sql: schema)
            let profiles = try TableProfile.all(db)
            var writer = try CollidingWriter(db, profiles, SchemaFeature.standard, keepsReferences: true)
            return try seeds.map { seed in
                let wanted = try writer.statements(seed: seed)
                for sql in wanted {
                    do {
                        try db.execute(sql: sql)
                    } catch let error as DatabaseError {
                        #expect([.SQLITE_CONSTRAINT, .SQLITE_MISMATCH].contains(error.resultCode), "\(sql): \(error)")
                        // `OR ROLLBACK` ends the savepoint, too.
                        if !db.isInsideTransaction { break }
                    }
                }
                return wanted
            }
        }
    }

    /// The statements that this schema needs: keys that differ only in case, both columns of the CHECK, changed keys.
    @Test func p63TheWriterDerivesStatementsFromTheSchema() throws {
        let found = try statements(Self.schema, seeds: 1...400).flatMap(\.self)
        func has(_ pattern: Regex<some Any>) -> Bool { found.contains { $0.contains(pattern) } }
        #expect(has(/INTO "item".*'k1'/) && has(/INTO "item".*'K1'/))
        #expect(has(/INTO "user".*'k2'/) && has(/INTO "user".*'K2'/))
        #expect(has(/UPDATE.* "user" SET "lo" = \d/) && has(/UPDATE.* "user" SET "hi" = \d/))
        #expect(has(/UPDATE.* "item" SET "sku" =/))
        for word in [
            "OR REPLACE", "OR IGNORE", "ON CONFLICT DO NOTHING", "DO UPDATE SET", "SAVEPOINT", "ROLLBACK TO", "DELETE",
        ] {
            #expect(found.contains { $0.contains(word) }, "\(word)")
        }
        #expect(found.contains { $0.contains("VALUES (") && $0.contains("), (") })
    }

    /// One node ranks rows that claim the same unique key in reverse. The simulator detects it on each key, including
    /// the one through the expression.
    @Test(arguments: ["email TEXT NOT NULL COLLATE NOCASE UNIQUE", "email TEXT NOT NULL"])
    func p63TheSimulatorFindsANodeThatMergesDifferentlyOnAUsersSchema(email: String) throws {
        var options = SimulationOptions()
        options.schema = Self.schema.replacing("email TEXT NOT NULL COLLATE NOCASE UNIQUE", with: email)
        options.faults = [.reordering, .foreign]
        var simulator = try Simulator(options: options)
        #expect((1...20).allSatisfy { simulator.run(seed: $0).failure == nil })
        simulator.sabotage = { db in
            try db.execute(sql: "UPDATE _martlet_entities SET unique_policy = 'keepOldest' WHERE name = 'user'")
        }
        let found = (1...100 as ClosedRange<UInt64>).lazy.compactMap { simulator.run(seed: $0).failure }.first
        #expect(found != nil)
    }

    @Test func p63OmittingPartOfASchemaKeepsTheOtherStatements() throws {
        let whole = try statements(Self.schema, seeds: 1...200)
        let part = try statements(String(Self.schema.prefix { $0 != ";" }) + ";", seeds: 1...200)
        // Statements that depend on no existing row.
        let inserts = zip(whole, part).filter { $0.0.first?.hasPrefix("INSERT INTO \"user\"") ?? false }
        #expect(inserts.count > 20)
        for (wanted, found) in inserts where !wanted.contains(where: { $0.contains("CONFLICT") }) {
            #expect(found == wanted)
        }
    }

    @Test func p63ASchemaIsSplitIntoPartsThatCanBeOmitted() throws {
        let text = SchemaText(
            """
            CREATE TABLE "a;b"(id INTEGER PRIMARY KEY, -- not; here
              v TEXT NOT NULL DEFAULT 'x,(' CHECK (v <> 'a,b'), w REAL REFERENCES t(x) ON DELETE SET NULL,
              UNIQUE (v, w)) WITHOUT ROWID, STRICT;
            CREATE TRIGGER r AFTER INSERT ON t BEGIN UPDATE t SET x = CASE WHEN 1 THEN 2 END; DELETE FROM t; END;
            CREATE UNIQUE INDEX i ON t(x) WHERE x->>'a' = 1e-5;
            """)
        let all = Set(0..<text.count)
        #expect(text.count == 19)
        #expect(text.text(without: []).contains("x->>'a' = 1e-5"))
        #expect(text.text(without: []).contains("END; DELETE FROM t; END;\n"))
        let single = Set(all.map { text.text(without: [$0]) })
        // Omitting the name of a column omits the whole column.
        #expect(single.count == text.count - 3, "\(single)")
        for gone in [
            "v TEXT", "NOT NULL", "'x,('", "CHECK (v <> 'a,b')", "SET NULL", "UNIQUE (v, w)", "WITHOUT ROWID",
            "TRIGGER", "WHERE",
        ] {
            #expect(single.contains { !$0.contains(gone) && $0.contains("\"a;b\"") }, "\(gone) stays")
        }
        #expect(text.text(without: all) == "")
    }

    /// Shrinking removes steps, statements, tables, columns and constraints from a run that breaks a guarantee, as long
    /// as the run still breaks it.
    @Test func p63ShrinkingRemovesStatementsAndPartsOfTheSchema() throws {
        var options = SimulationOptions()
        options.workload = .generated
        options.faults = []
        var simulator = try Simulator(options: options)
        simulator.tamper = { message, _ in
            message.headers.contains(MessageHeader("martlet-sequence", "2")) ? nil : message
        }
        let report = simulator.run(seed: 7)
        let failure = try #require(report.failure)
        // Enough time for a busy machine.
        let short = simulator.shrink(report, limit: .seconds(300))
        #expect(short.failure?.check == failure.check)
        #expect(short.steps.count <= 6, "\(short.trace)")
        #expect(short.statements.count < report.statements.count && short.statements.count <= 3, "\(short.trace)")
        #expect(short.options.withoutParts.count * 2 > short.partCount, "\(short.trace)")
        func schemaSize(_ report: SimulationReport) -> Int {
            report.trace.filter { $0.contains("  schema  ") }.reduce(0) { $0 + $1.count }
        }
        #expect(schemaSize(short) * 2 < schemaSize(report), "\(short.trace)")
        // The command reproduces the shrunk run.
        var again = try Simulator(options: short.options)
        again.tamper = simulator.tamper
        #expect(again.run(seed: 7).trace == short.trace)
        #expect(short.command().contains("--workload generated") && short.command().contains("--without "))
    }

    @Test func listsOfFeaturesSurviveARoundTrip() {
        #expect(FeatureList.features("default") == SchemaFeature.standard)
        #expect(FeatureList.features("all") == Set(SchemaFeature.allCases))
        #expect(FeatureList.features("-checks") == SchemaFeature.standard.subtracting([.checks]))
        #expect(FeatureList.features("checks,strict") == [.checks, .strict])
        #expect(FeatureList.features("cheques") == nil)
        for features in [[], [.checks], SchemaFeature.standard.subtracting([.strict]), Set(SchemaFeature.allCases)]
            as [Set<SchemaFeature>]
        {
            #expect(FeatureList.features(FeatureList.text(features)) == features)
        }
    }
}
