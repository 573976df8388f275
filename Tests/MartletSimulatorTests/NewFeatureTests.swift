import GRDB
import MartletSimulator
import MartletStore
import Testing

/// Features that are off by default: each by itself, with a check that it really occurs.
@Suite struct NewFeatureTests {
    private func options(_ features: Set<SchemaFeature>, _ faults: Set<Fault> = [.foreign]) -> SimulationOptions {
        var options = SimulationOptions()
        options.workload = .generated
        options.nodeCount = 2
        options.faults = faults
        options.features = features
        return options
    }

    /// Runs seeds with one feature alone.
    ///
    /// - Returns: all lines of their traces.
    private func trace(
        _ feature: SchemaFeature, seeds: ClosedRange<UInt64>, faults: Set<Fault> = [.foreign]
    ) throws -> [String] {
        let simulator = try Simulator(options: options([feature], faults))
        return seeds.flatMap { seed in
            let report = simulator.run(seed: seed)
            #expect(report.failure == nil, "\(report.command())")
            return report.trace
        }
    }

    @Test(arguments: [SchemaFeature.replacedNulls, .backups, .lateTriggers, .recreations])
    func aRunWithANewFeatureAloneIsDecidedByItsSeed(_ feature: SchemaFeature) throws {
        let simulator = try Simulator(options: options([feature]))
        let first = simulator.run(seed: 3)
        let second = simulator.run(seed: 3)
        #expect(first.trace == second.trace)
        #expect(first.hash == second.hash)
        #expect(first.command().contains("--features=\(feature.rawValue)"))
    }

    /// Otherwise the seeds in documents and tests would mean other runs.
    @Test func featuresThatAreOffByDefaultChangeNoDraws() throws {
        let off = SchemaFeature.off.keys
        #expect(SchemaFeature.standard.isDisjoint(with: off))
        for seed in 1...50 as ClosedRange<UInt64> {
            var standard = SchemaGenerator(seed: seed, features: SchemaFeature.standard)
            var all = SchemaGenerator(seed: seed, features: Set(SchemaFeature.allCases))
            let lines = standard.schema().sql.split(separator: "\n")
            let more = all.schema().sql.split(separator: "\n")
            // The table with the additional column, and its index.
            let kept = lines.filter { more.contains($0) }
            #expect(kept.count >= lines.count - 1 && more.count <= lines.count + 1, "seed \(seed)")
        }
    }

    @Test func aNullThatADefaultReplacesDisplacesARow() throws {
        let queue = try DatabaseQueue()
        let found = try queue.inDatabase { db in
            try db.execute(
                sql: """
                    CREATE TABLE item(id INTEGER PRIMARY KEY, code TEXT NOT NULL DEFAULT 'k1' UNIQUE, note TEXT);
                    INSERT INTO item VALUES (1, 'k1', 'first'), (2, 'k2', 'second');
                    """)
            var writer = try CollidingWriter(db, TableProfile.all(db), [.replacedNulls], keepsReferences: true)
            return try (1...200 as ClosedRange<UInt64>).flatMap { try writer.statements(seed: $0) }
        }
        let update = try #require(found.first { $0.hasPrefix("UPDATE OR REPLACE \"item\" SET \"code\" = NULL") })
        let insert = try #require(
            found.first { $0.hasPrefix("INSERT OR REPLACE INTO \"item\"(\"code\", \"note\") VALUES (NULL, ") })
        try queue.inDatabase { db in
            try db.execute(sql: insert)
            #expect(try Int.fetchOne(db, sql: "SELECT count(*) FROM item WHERE id = 1") == 0)
            try db.execute(sql: update)
            #expect(try Int.fetchOne(db, sql: "SELECT count(*) FROM item WHERE code = 'k1'") == 1)
        }
    }

    @Test func generatedSchemasHaveDefaultsThatDisplaceRows() throws {
        for seed in 1...20 as ClosedRange<UInt64> {
            var generator = SchemaGenerator(seed: seed, features: [.replacedNulls])
            let schema = generator.schema()
            #expect(schema.sql.contains(/"z" (TEXT|INTEGER) NOT NULL DEFAULT/), "seed \(seed)")
            let queue = try DatabaseQueue()
            try queue.inDatabase { try $0.execute(sql: schema.sql) }
        }
        let trace = try trace(.replacedNulls, seeds: 1...8)
        #expect(trace.contains { $0.contains("\"z\" = NULL WHERE") })
        #expect(trace.contains { $0.contains(/INSERT OR REPLACE INTO .* VALUES \(.*NULL/) })
    }

    @Test func programsMakeBackupsAndRebuildTablesBesideThem() throws {
        let trace = try trace(.backups, seeds: 1...20)
        #expect(trace.contains { $0.contains("CREATE TABLE \"sim_backup_") })
        #expect(trace.contains { $0.contains("RENAME TO") && !$0.contains("sim_backup_") })
    }

    @Test func programsCreateTriggersAndFireThemAtOnce() throws {
        let trace = try trace(.lateTriggers, seeds: 1...20)
        let lines = trace.filter { $0.contains("CREATE TRIGGER late_") }
        #expect(lines.contains { $0.contains("; END; INSERT INTO ") })
        #expect(lines.contains { $0.contains("AFTER UPDATE") } && lines.contains { $0.contains("AFTER INSERT") })
    }

    @Test func programsDropTablesAfterWritesAndRecreateThem() throws {
        let trace = try trace(.recreations, seeds: 1...30)
        let dropped = trace.filter { $0.contains("DROP TABLE") && $0.contains("CREATE TABLE sim_copy AS") }
        // In one transaction, and in several.
        #expect(dropped.contains { $0.contains("INSERT OR IGNORE INTO") && !$0.contains("CREATE TABLE sim_left") })
        #expect(dropped.contains { $0.contains("CREATE TABLE sim_left") })
        #expect(trace.contains { $0.contains("DROP TABLE sim_left") })
        #expect(trace.contains { $0.contains("attaches its tables") })
    }

    /// Some nodes wait for the rows of a table that exists again. Rows that come back are not deleted elsewhere.
    @Test func clocksAreSetBackWhileAProgramFillsATable() throws {
        let trace = try trace(.recreations, seeds: 1...30, faults: [.foreign, .clocks])
        #expect(trace.contains { $0.contains("DROP TABLE sim_left") })
        #expect(trace.contains { $0.contains(/which is -\d+ ms off/) })
    }

    /// Each transaction continues where the one before ended, and the table is as it was.
    @Test func aRecreatedTableHasItsRowsAgain() throws {
        let table = """
            CREATE TABLE "a b"(id INTEGER PRIMARY KEY, v, "it's" TEXT NOT NULL, g AS (v || 'x'));
            CREATE UNIQUE INDEX i1 ON "a b"(v);
            """
        for seed in 0..<20 as Range<UInt64> {
            let queue = try DatabaseQueue()
            try queue.inDatabase { db in
                try db.execute(sql: table + "INSERT INTO \"a b\" VALUES (3, x'00', 'a'), (7, 1.5, 'b');")
                let schema = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"
                let before = try (String.fetchAll(db, sql: schema), Row.fetchAll(db, sql: "SELECT * FROM \"a b\""))
                let profile = try #require(try TableProfile.all(db).first)
                #expect(try TableRecreation.isAlone(db, profile))
                for sql in try TableRecreation(db: db, table: profile).statements(Chance(seed)) {
                    try db.execute(sql: sql)
                }
                var count = 0
                while try TableRecreation.isUnderWay(db), count < 3 {
                    for sql in try TableRecreation.next(db) { try db.execute(sql: sql) }
                    count += 1
                }
                #expect(try !TableRecreation.isUnderWay(db))
                #expect(try String.fetchAll(db, sql: schema) == before.0)
                #expect(try Row.fetchAll(db, sql: "SELECT * FROM \"a b\"") == before.1)
            }
        }
    }
}
