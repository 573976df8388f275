import CMartletSQLite
package import GRDB
import Synchronization

/// Maintains the data that user triggers derive from tracked tables (full-text indexes, counters, audit tables) on the
/// connection that applies remote changes.
///
/// The file's triggers don't run on this connection. Triggers that write only to untracked tables are copied as TEMP
/// triggers, which do run. See decision 32.
///
/// Confined to its connection, except for ``takeFailures()``.
package final class DerivedWrites: Sendable {
    // Safe because it is only touched on the connection's queue, and lives as long as the connection.
    nonisolated(unsafe) private let switches: UnsafeMutablePointer<UInt64>
    // Safe because it is only touched on the connection's queue.
    nonisolated(unsafe) private var source: [Row]?
    // Safe because it is only touched on the connection's queue.
    nonisolated(unsafe) private var triggers: [UserTrigger] = []
    private let failures = Mutex<[DerivedFailure]>([])

    /// - Throws: ``/MartletCore/StoreError`` if SQLite refuses to register the function that the copies call.
    package init(_ db: Database) throws {
        guard let handle = db.sqliteConnection, let switches = martlet_add_switches(handle, TriggerExaminer.gate) else {
            throw StoreError(.sqlite, "SQLite refuses to register a function for one connection.")
        }
        self.switches = switches
        switches.pointee = Self.all
    }

    /// Updates the copies, if they don't match the current triggers.
    package func follow(_ db: Database, _ catalog: Catalog) throws {
        // Everything that decides about copies. This includes tables: the target of a trigger may be gone, or be
        // another kind of table.
        let source = try Row.fetchAll(
            db,
            sql: """
                SELECT type, name, tbl_name, sql FROM main.sqlite_schema
                WHERE name NOT GLOB '\(InternalName.prefix)*' AND type <> 'index' AND EXISTS (\(TriggerExaminer.source))
                UNION ALL SELECT 'tracked', name, NULL, NULL FROM \(InternalName.entities) WHERE state = 'tracked'
                """)
        if source != self.source {
            try remove(db)
            triggers = try TriggerExaminer.examine(db, tracked: catalog.entities.map(\.name))
            self.source = source
        }
        // A rollback removes the copies again. SQLite stores their SQL without the word TEMP.
        let wanted = triggers.compactMap(\.copy)
        let present = try String.fetchSet(db, sql: "SELECT sql FROM temp.sqlite_schema WHERE \(Self.isCopy)")
        guard
            present
                != Set(wanted.map { $0.replacing("CREATE TEMP TRIGGER", with: "CREATE TRIGGER", maxReplacements: 1) })
        else { return }
        try remove(db)
        // SQLite runs the newest of several triggers first, and TEMP triggers the other way round.
        for copy in wanted.reversed() { try db.execute(sql: copy) }
    }

    private static let isCopy = "type = 'trigger' AND name GLOB '\(TriggerExaminer.prefix)*'"

    private func remove(_ db: Database) throws {
        for name in try String.fetchAll(db, sql: "SELECT name FROM temp.sqlite_schema WHERE \(Self.isCopy)") {
            try db.execute(sql: "DROP TRIGGER temp.\(name.quotedName)")
        }
    }

    /// Returns whether a copied trigger derives data from the table.
    package func isDerived(from table: String) -> Bool {
        triggers.contains { $0.isCopied && $0.table.lowercased() == table.lowercased() }
    }

    /// Returns whether the table has an `ON CONFLICT` clause, which must not decide a merge, and a trigger that writes
    /// only to untracked tables.
    package func decidesConflicts(_ table: String) -> Bool {
        triggers.contains { $0.isOfDecidingTable && $0.table.lowercased() == table.lowercased() }
    }

    /// Writes a row of a table from which data is derived, and lets the copies run.
    ///
    /// A damaged index, or a trigger that fails, must not prevent the row from being written: failing copies are
    /// skipped, and the failure is recorded.
    /// - Throws: SQLite's error if the row itself is refused.
    package func run(_ db: Database, _ statement: PreparedStatement, on entity: Entity, at time: Int64) throws {
        do {
            try statement.run()
        } catch let error as StoreError where switches.pointee == Self.all && error.mayBeOfTrigger {
            // If the row itself is refused, no copy is at fault.
            guard try fails(db, statement, without: copies(on: entity)) == nil else {
                return try without { try statement.run() }
            }
            try runWorking(db, statement, on: entity, at: time)
        }
    }

    /// Writes the row with all copies that work.
    private func runWorking(_ db: Database, _ statement: PreparedStatement, on entity: Entity, at time: Int64) throws {
        var left = copies(on: entity)
        for trigger in left {
            let others = left.filter { $0 != trigger }
            guard let error = try fails(db, statement, without: others) else {
                left = others
                continue
            }
            try note(db, entity, trigger, error, at: time)
        }
        try with(Self.all & ~bits(left)) { try statement.run() }
    }

    private func copies(on entity: Entity) -> [UserTrigger] {
        triggers.filter { $0.isCopied && $0.table.lowercased() == entity.name.lowercased() }
    }

    /// Returns the error of the write without these copies, or nil if it succeeds. All its effects are undone.
    private func fails(_ db: Database, _ statement: PreparedStatement, without copies: [UserTrigger]) throws
        -> StoreError?
    {
        var failure: StoreError?
        try db.inSavepoint {
            do {
                try with(Self.all & ~bits(copies)) { try statement.run() }
            } catch let error as StoreError where error.mayBeOfTrigger {
                failure = error
            }
            return .rollback
        }
        return failure
    }

    private static let all = UInt64.max

    private func bits(_ triggers: [UserTrigger]) -> UInt64 { triggers.reduce(0) { $0 | 1 << UInt64($1.number & 63) } }

    private func with<T>(_ bits: UInt64, _ body: () throws -> T) rethrows -> T {
        let before = switches.pointee
        switches.pointee = bits
        defer { switches.pointee = before }
        return try body()
    }

    /// Runs `body` without any copies, because its writes will be undone.
    package func without<T>(_ body: () throws -> T) rethrows -> T { try with(0, body) }

    // MARK: Failures

    private func note(
        _ db: Database, _ entity: Entity, _ trigger: UserTrigger, _ error: StoreError, at time: Int64
    ) throws {
        let known = try DerivedFailure.all(db).first { $0.trigger == trigger.name }
        let failure = DerivedFailure(
            table: entity.name, trigger: trigger.name, count: (known?.count ?? 0) + 1, time: time,
            message: error.message)
        try failure.save(db)
        failures.withLock { failures in
            if let index = failures.firstIndex(where: { $0.trigger == trigger.name }) {
                failures[index].count += 1
            } else {
                var first = failure
                first.count = 1
                failures.append(first)
            }
        }
    }

    /// Returns the failures since the last call. From any thread.
    package func takeFailures() -> [DerivedFailure] {
        failures.withLock { failures in
            defer { failures = [] }
            return failures
        }
    }
}

/// A failure of a trigger for remote rows, which were applied without it.
package struct DerivedFailure: Codable, Sendable, Equatable {
    package var table: String
    package var trigger: String
    /// The number of failures since the agent was started.
    package var count: Int
    /// The time of the last failure, in milliseconds since 1970.
    package var time: Int64
    package var message: String

    private static let prefix = "derived_failure_"

    package static func all(_ db: Database) throws -> [DerivedFailure] {
        try String.fetchAll(
            db, sql: "SELECT value FROM \(InternalName.meta) WHERE key GLOB '\(prefix)*' ORDER BY key"
        ).map { try Catalog.decode(Self.self, $0) }
    }

    /// Deletes all recorded failures. Gaps that they left in derived data must then be found by other means.
    package static func clear(_ db: Database) throws {
        // Write nothing if there are none.
        guard try !all(db).isEmpty else { return }
        try db.execute(sql: "DELETE FROM \(InternalName.meta) WHERE key GLOB '\(prefix)*'")
    }

    fileprivate func save(_ db: Database) throws {
        try Meta.set(db, "\(Self.prefix)\(trigger)", try Catalog.encode(self))
    }
}

extension StoreError {
    /// Whether a trigger, or the virtual table that it writes to, may have caused the error. Not if SQLite lacks a
    /// lock, memory, or the file: then derived data would be lost because of a temporary condition.
    fileprivate var mayBeOfTrigger: Bool {
        guard let sqliteCode else { return false }
        // SQLITE_ABORT, _BUSY, _LOCKED, _NOMEM, _READONLY, _INTERRUPT, _IOERR, _CANTOPEN, _PROTOCOL
        return ![4, 5, 6, 7, 8, 9, 10, 14, 15].contains(sqliteCode & 0xff)
    }
}
