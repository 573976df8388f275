package import GRDB

/// Tables that were dropped and created again, and lack rows since. A program may be about to fill them again, in
/// separate transactions.
///
/// Missing rows of such a table don't count as deleted until the table has stayed unchanged for a while. Until then it
/// is not tracked; writes to it are found by comparing its rows.
///
/// Confined to its connection, in the caller's transaction.
package enum RecreatedTables {
    /// How long a table must stay unchanged before its missing rows count as deleted.
    package static let patience = Duration.seconds(2)

    /// The longest wait in all for a table that keeps changing: a program that dropped its rows may keep adding others.
    ///
    /// - Parameter patience: How long the table must stay unchanged.
    package static func longestWait(_ patience: Duration) -> Duration { patience * 300 }

    /// The state of a table that was dropped.
    private struct RecreatedTable: Codable {
        /// The time when rows were last seen to come back, in milliseconds since 1970.
        var changed: Int64
        /// How many rows were missing then. Nil while the table is gone.
        var missing: Int64?
        /// The position of the log when the table was first seen that may hold a copy of the rows.
        var start: Int64?
        /// The time when rows were first seen to be missing. Nil while the table is gone, and in a record of an earlier
        /// version.
        var since: Int64?

        func isRecent(_ patience: Duration, at now: Int64) -> Bool {
            // A clock that was set back must not prolong the wait.
            (0..<patience / .milliseconds(1)).contains(Double(age(at: now)))
        }

        /// The time since then, in milliseconds. Negative if the clock was set back.
        func age(at now: Int64) -> Int64 { now - changed }
    }

    /// The time, in milliseconds since 1970, by the clock that also times the changes in the log.
    private static func now(_ db: Database) throws -> Int64 {
        try Int64.fetchOne(db, sql: "SELECT \(CaptureTriggers.now)") ?? 0
    }

    private static let key = "remade_tables"

    private static func all(_ db: Database) throws -> [Int64: RecreatedTable] {
        try Meta.text(db, key).map { try Catalog.decode([Int64: RecreatedTable].self, $0) } ?? [:]
    }

    private static func set(_ db: Database, _ id: Int64, _ recreated: RecreatedTable?) throws {
        var all = try all(db)
        guard recreated != nil || all[id] != nil else { return }
        all[id] = recreated
        try Meta.set(db, key, try Catalog.encode(all))
    }

    // MARK: Following

    /// Records that the table is gone.
    static func noteLost(_ db: Database, _ id: Int64) throws {
        try set(db, id, RecreatedTable(changed: try now(db), start: try StaleCopy.startOfCopy(db, of: id)))
    }

    static func forget(_ db: Database, _ id: Int64) throws { try set(db, id, nil) }

    /// Returns whether a lost table may come back as it was.
    static func isKnown(_ db: Database, _ id: Int64) throws -> Bool { try all(db)[id] != nil }

    /// Returns the position of the log when the table was first seen from which this table's rows may have come.
    static func start(_ db: Database, _ id: Int64) throws -> Int64? {
        try all(db)[id]?.start ?? StaleCopy.startOfCopy(db, of: id)
    }

    /// Returns whether to leave a table alone for now that exists again and has no triggers.
    ///
    /// - Parameter wasLost: Whether the table was lost until now.
    static func isAwaited(_ db: Database, _ id: Int64, wasLost: Bool, patience: Duration) throws -> Bool {
        guard patience > .zero, let entity = try Catalog.load(db)[id] else { return false }
        let known = try all(db)[id]
        // A table that was never seen to be gone or without rows was rebuilt in one transaction.
        if known == nil, !wasLost, try !isEmpty(db, entity.name) { return false }
        let missing = try missingRows(db, entity)
        guard missing > 0 else { return false }
        let now = try now(db)
        // A clock that was set back must not prolong the wait.
        let since = min(known?.since ?? now, now)
        guard Double(now - since) < longestWait(patience) / .milliseconds(1) else { return false }
        // After a clock was set back, the wait begins again: rows that are still to come must not count as deleted.
        if let known, let before = known.missing, missing >= before, known.age(at: now) >= 0 {
            return known.isRecent(patience, at: now)
        }
        try set(db, id, RecreatedTable(changed: now, missing: missing, start: try start(db, id), since: since))
        return true
    }

    /// Returns whether there is a table whose rows may come back without a change of the schema.
    static func areAwaited(_ db: Database) throws -> Bool {
        try all(db).keys.contains { id in
            try String.fetchOne(
                db, sql: "SELECT name FROM \(InternalName.entities) WHERE id = ? AND state = 'lost'", arguments: [id]
            ).map { try TableInspector(db).name(ignoringCase: $0) != nil } ?? false
        }
    }

    /// Returns how many rows are missing that the log does not say are deleted.
    private static func missingRows(_ db: Database, _ entity: Entity) throws -> Int64 {
        guard entity.hasIdentity else { return 0 }
        let resolver = try Audit.resolver(db, Catalog.load(db), [entity])
        return try AuditScan(db, [entity], resolver).rows(entity).reduce(0) { $0 + ($1.isThere ? 0 : 1) }
    }

    private static func isEmpty(_ db: Database, _ table: String) throws -> Bool {
        try Bool.fetchOne(db, sql: "SELECT NOT EXISTS (SELECT 1 FROM \(table.storeTable))") ?? true
    }

    private static func count(_ db: Database, _ table: String) throws -> Int64 {
        try Int64.fetchOne(db, sql: "SELECT count(*) FROM \(table.storeTable)") ?? 0
    }

    // MARK: Waiting

    /// Returns the number of rows of each table that seems to be in the middle of a rebuild, by name. Nil for a table
    /// that is gone. Empty if there are no such tables.
    package static func underWay(_ db: Database) throws -> [String: Int64?] {
        var found: [String: Int64?] = [:]
        let inspector = TableInspector(db)
        let recreated = try all(db)
        let now = try now(db)
        for row in try Row.fetchAll(
            db, sql: "SELECT id, name, former, state FROM \(InternalName.entities) WHERE state IN ('tracked', 'lost')")
        {
            let id: Int64 = row["id"]
            let isTracked = row["state"] == "tracked"
            if isTracked, try SchemaFollower.isTriggered(db, id) { continue }
            guard let name = try inspector.name(ignoringCase: row["name"]) else {
                let former = try Catalog.decode([String].self, row["former"])
                let isRenamed = try former.contains { try inspector.name(ignoringCase: $0) != nil }
                if isTracked ? !isRenamed : recreated[id]?.isRecent(patience, at: now) ?? false {
                    found[row["name"]] = .some(nil)
                }
                continue
            }
            // The rows of a virtual table may be known only to another program.
            guard try inspector.kind(name) == "table" else { continue }
            // SQLite may not even be able to count the rows.
            let isCountable =
                try isTracked || recreated[id] != nil
                ? TableProbe.missingPart(db, of: name) == nil : SchemaFollower.canResume(db, id, name)
            guard isCountable else { continue }
            let rows = try count(db, name)
            if try rows < knownRows(db, id) { found[name] = rows }
        }
        return found
    }

    /// Returns how many rows the table had, as far as that is known without reading the log.
    private static func knownRows(_ db: Database, _ id: Int64) throws -> Int64 {
        let side = InternalName.side(id)
        if try TableInspector(db).name(ignoringCase: side) != nil {
            let reserved = try Int64.fetchOne(
                db, sql: "SELECT count(*) FROM \(InternalName.reserved) WHERE entity = ?", arguments: [id])
            let rows = try count(db, side) + recentRows(db, id, side) - (reserved ?? 0)
            if rows > 0 { return rows }
        }
        return try Int64.fetchOne(
            db, sql: "SELECT count(*) FROM \(InternalName.prints) WHERE entity = ?", arguments: [id]) ?? 0
    }

    /// Returns how many more rows a table without an integer key had than its side table has: the newest clocks are not
    /// flushed to the side table yet.
    private static func recentRows(_ db: Database, _ id: Int64, _ side: String) throws -> Int64 {
        var newest: [[UInt8]: Bool] = [:]
        try RecentClocks.forEach(db) { record in
            if record.entity == id { newest[Array(record.identity)] = record.clock != nil }
        }
        guard !newest.isEmpty else { return 0 }
        let find = try PreparedStatement(db, "SELECT 1 FROM \(side) WHERE ident = ?1")
        var rows: Int64 = 0
        for (identity, isThere) in newest {
            find.bind(1, blob: identity)
            let isFlushed = try find.first { _ in true } ?? false
            rows += (isThere ? 1 : 0) - (isFlushed ? 1 : 0)
        }
        return rows
    }
}
