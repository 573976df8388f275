import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Local changes that are enqueued without decoding them, compared with the same changes decoded.
@Suite struct EnqueuerFastPathTests {
    private static let schema = """
        CREATE TABLE plain(id BLOB PRIMARY KEY NOT NULL, a, b TEXT, c REAL, d INTEGER UNIQUE);
        CREATE TABLE pair(x TEXT, z, y NUMERIC, PRIMARY KEY(y, x));
        CREATE TABLE "odd ""name"(y, "né""e" TEXT PRIMARY KEY NOT NULL) WITHOUT ROWID;
        CREATE TABLE owner(name TEXT PRIMARY KEY NOT NULL, note);
        CREATE TABLE owned(name TEXT PRIMARY KEY NOT NULL, owner TEXT REFERENCES owner(name) ON UPDATE CASCADE);
        CREATE TABLE numbered(id INTEGER PRIMARY KEY, note);
        CREATE TABLE linked(name TEXT PRIMARY KEY NOT NULL, target INTEGER REFERENCES numbered(id));
        INSERT INTO plain VALUES (x'01', 'before', NULL, 0, 0), ('a', 'before', x'', 1, 1);
        INSERT INTO "odd ""name" VALUES (1, 'a');
        """

    /// SQL that changes all tables at random, with few keys, so that rows come again.
    private struct Generator {
        var random: SplitMix
        var values = [
            "NULL", "1", "-9223372036854775808", "9223372036854775807", "1.5", "-0.0", "9e999", "''", "'a'",
            "'é🐦' || char(0) || 'b'", "CAST(x'ff61' AS TEXT)", "CAST(x'61c3' AS TEXT)", "x''", "x'00ff'",
            "zeroblob(130)", "'\(String(repeating: "long ", count: 30))'", "'12'",
        ]
        var renamed = "a"
        var owner = "owner"
        var odd = "\"odd \"\"name\""

        mutating func key() -> String {
            random.pick(["x'01'", "x'02'", "'a'", "1", "1.0", "CAST(x'ff' AS TEXT)", "zeroblob(50)"])
        }
        mutating func text() -> String { random.pick(["'a'", "'b'", "'é'", "''", "CAST(x'ff' AS TEXT)"]) }
        mutating func value() -> String { random.pick(values) }
        mutating func verb() -> String { random.pick(["INSERT OR IGNORE", "INSERT OR IGNORE", "REPLACE"]) }

        mutating func statement() -> String {
            switch random.below(18) {
            case 0...2:
                """
                \(verb()) INTO plain(id, \(renamed), b, c, d)
                VALUES (\(key()), \(value()), \(value()), \(value()), \(random.below(20)))
                """
            case 3...5: "UPDATE plain SET \(random.pick([renamed, "b", "c"])) = \(value()) WHERE id = \(key())"
            case 6: "UPDATE plain SET b = \(value()), c = \(value())"
            case 7: "UPDATE OR IGNORE plain SET id = \(key()), c = \(value()) WHERE id = \(key())"
            case 8: "DELETE FROM plain WHERE id = \(key())"
            case 9:
                """
                \(verb()) INTO pair(x, z, y)
                VALUES (\(random.pick([text(), "NULL"])), \(value()), \(random.pick(["1", "'1'", "NULL"])))
                """
            case 10: "UPDATE OR IGNORE pair SET z = \(value()), y = \(random.pick(["y", "y", "2"])) WHERE x = \(text())"
            case 11: "DELETE FROM pair WHERE x = \(text())"
            case 12: "\(verb()) INTO \(odd) VALUES (\(value()), \(text()))"
            case 13: "UPDATE \(odd) SET y = \(value()) WHERE \"né\"\"e\" = \(text())"
            case 14: "\(verb()) INTO \(owner) VALUES (\(text()), \(value()))"
            case 15: "\(verb()) INTO owned VALUES (\(text()), \(random.pick([text(), "NULL"])))"
            case 16: "\(verb()) INTO linked VALUES (\(text()), \(1 + random.below(5)))"
            default:
                random.pick(["DELETE FROM \(owner) WHERE name = \(text())", "INSERT INTO numbered(note) VALUES (1)"])
            }
        }

        /// - Parameter count: the number of transactions.
        mutating func transactions(_ count: Int) -> String {
            (0..<count).map { _ in
                "BEGIN; " + (0...random.below(4)).map { _ in statement() + "; " }.joined() + "COMMIT;"
            }.joined(separator: "\n")
        }
    }

    /// What enqueuing leaves in a copy of the store: each table of Martlet's, row by row. Not the log, which gets new
    /// rows only when enqueuing is done.
    ///
    /// - Parameter isDecoded: true to decode all changes. They are, as long as any row waits.
    private func enqueued(
        _ original: String, in lab: Lab, isDecoded: Bool, _ configuration: SyncConfiguration
    ) throws -> [String] {
        let path = lab.directory.path(isDecoded ? "decoded" : "plain")
        try FileManager.default.copyItem(atPath: original, toPath: path)
        let waiting = """
            INSERT INTO _martlet_shadows(id, entity, ident, reason, since) VALUES (-1, -1, x'00', 'missingTarget', 0)
            """
        if isDecoded { try ForeignProgram.shell.run(waiting, on: path) }
        let instant = ContinuousClock.now
        let engine = try SyncEngine(
            path: path, configuration: configuration, now: { 4_000_000_000_000 }, instant: { instant })
        for table in ["plain", "pair"] {
            #expect(
                try engine.session.read { db in
                    let context = try ReplicaContext(db, now: { 0 })
                    return try context.plainTable(#require(context.catalog.entity(named: table)).id) != nil
                })
        }
        try runUntilNothingMoves("enqueuing", limit: 1000) { try engine.session.enqueueSome().hasMore }
        try engine.close()
        return try DatabaseQueue(path: path).read { db in
            let tables = try String.fetchAll(
                db, sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '\\_martlet%' ESCAPE '\\'")
            return try tables.filter { !["_martlet_shadows", "_martlet_log"].contains($0) }.sorted().flatMap { table in
                let columns = try db.columns(in: table).map { "quote(\($0.name))" }
                let line = columns.joined(separator: "|| ', ' ||")
                return try String.fetchAll(db, sql: "SELECT '\(table): ' || \(line) FROM \(table) ORDER BY 1")
            }
        }
    }

    @Test(arguments: UInt64(0)..<25) func theMessagesAndClocksAreThoseOfDecodedChanges(seed: UInt64) throws {
        let lab = try Lab(Self.schema)
        let a = try lab.node("a")
        let b = try lab.node("b")
        var generator = Generator(random: SplitMix(seed: seed))
        // Rows and deletes of both nodes. A text that the other node changed to another form, say.
        for node in [a, b] { try ForeignProgram.shell.run(generator.transactions(15), on: node.path) }
        try exchange([a, b])
        try ForeignProgram.shell.run(generator.transactions(15), on: a.path)
        if seed % 2 == 0 {
            try a.foreignWrite(
                "ALTER TABLE plain RENAME COLUMN a TO first; ALTER TABLE pair ADD COLUMN added DEFAULT 5")
            generator.renamed = "first"
            if seed % 4 == 0 {
                try a.write("ALTER TABLE plain ADD COLUMN a; ALTER TABLE owner RENAME TO holder")
                try a.write("ALTER TABLE \(generator.odd) RENAME TO even")
                (generator.owner, generator.odd) = ("holder", "even")
            }
        }
        try ForeignProgram.shell.run(generator.transactions(25), on: a.path)
        try ForeignProgram.shell.run("PRAGMA wal_checkpoint(TRUNCATE)", on: a.path)
        // In some runs, commits end in the middle of transactions.
        var configuration = SyncConfiguration()
        if seed % 3 == 0 { (configuration.enqueueLimits.changes, configuration.enqueueLimits.bytes) = (10, 60) }
        if seed % 5 == 0 { configuration.encoding = .json }
        let plain = try enqueued(a.path, in: lab, isDecoded: false, configuration)
        let decoded = try enqueued(a.path, in: lab, isDecoded: true, configuration)
        #expect(plain.contains { $0.hasPrefix("_martlet_outbox:") })
        #expect(plain == decoded)
    }
}
