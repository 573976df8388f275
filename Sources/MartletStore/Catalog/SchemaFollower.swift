import Foundation
package import GRDB

extension LostEntity {
    package static func all(_ db: Database) throws -> [LostEntity] {
        try Row.fetchAll(
            db, sql: "SELECT name, reason FROM \(InternalName.entities) WHERE state = 'lost' ORDER BY id"
        ).map { LostEntity(name: $0["name"], reason: $0["reason"] ?? "") }
    }
}

/// Detects schema changes by other programs, and updates catalog and triggers.
///
/// SQLite counts schema changes in `schema_version`; one read of it tells whether anything changed.
package enum SchemaFollower {
    /// Brings catalog and triggers up to date, in the caller's transaction.
    ///
    /// Changes that the triggers could not see, because the schema was ahead of them, are logged. The caller closes the
    /// transaction.
    /// - Parameters:
    ///   - statements: The connection's compiled statements, if it calls this often.
    ///   - isBeginning: True if the transaction has written nothing yet.
    ///   - patience: How long a recreated table may lack rows before they count as deleted.
    /// - Returns: The findings about recreated tables.
    @discardableResult
    package static func follow(
        _ db: Database, using statements: ClosingStatements? = nil, isBeginning: Bool = false, patience: Duration
    ) throws -> AuditReport {
        if let statements, try statements.isSchemaFollowed(isBeginning: isBeginning) { return AuditReport() }
        guard try hasChanged(db) else { return AuditReport() }
        var report = AuditReport()
        try followTables(db, .init(patience: patience), &report)
        return report
    }

    /// Returns SQLite's version number of the schema.
    static func version(_ db: Database) throws -> Int64? {
        try Int64.fetchOne(db.cachedStatement(sql: "PRAGMA main.schema_version"))
    }

    /// Returns whether the schema has changed since catalog and triggers were last updated.
    package static func hasChanged(_ db: Database) throws -> Bool {
        try version(db) != Meta.integer(db, MetaKey.schemaVersion)
    }

    /// The extent of an update of catalog and triggers.
    struct Extent {
        /// Whether to stop tracking missing tables. In the middle of a script, a table may be gone for a moment.
        var givesUpMissing = true
        /// Whether to track lost tables again that have come back.
        var resumes = true
        /// Whether to look for rows that came or went while a table had no triggers, or went through an index that its
        /// triggers did not know.
        var audits = true
        /// How long to wait for the rows of a recreated table.
        var patience = Duration.zero
    }

    /// - Returns: The entities whose triggers were missing, if the extent leaves their audit to the caller.
    @discardableResult
    static func followTables(_ db: Database, _ extent: Extent = .init()) throws -> Set<Int64> {
        var report = AuditReport()
        return try followTables(db, extent, &report)
    }

    @discardableResult
    private static func followTables(
        _ db: Database, _ extent: Extent, _ report: inout AuditReport
    ) throws -> Set<Int64> {
        try RecentClocks.flush(db)
        try followNames(db, findsRenamed: extent.givesUpMissing)
        if extent.resumes { try resumeLost(db, patience: extent.patience) }
        let outrun = try outrunTables(db)
        var blind = Set<Int64>()
        var recreated = Set<Int64>()
        for id in try Int64.fetchAll(
            db, sql: "SELECT id FROM \(InternalName.entities) WHERE state = 'tracked' ORDER BY id")
        {
            guard try followTable(db, id, outrun, givesUpMissing: extent.givesUpMissing) == .blind else { continue }
            // A table that still has triggers is the same one.
            guard try !isTriggered(db, id) else {
                blind.insert(id)
                continue
            }
            if try RecreatedTables.isAwaited(db, id, wasLost: false, patience: extent.patience) {
                try awaitRows(db, id)
            } else {
                recreated.insert(id)
            }
        }
        blind.formUnion(recreated)
        if extent.audits { try StaleCopy.putBack(db, recreated) }
        for id in blind { try RecreatedTables.forget(db, id) }
        try reinstallTriggers(db)
        if extent.audits, !blind.isEmpty {
            report = try Audit.runBlind(db, blind)
            try Meta.set(db, MetaKey.unseenTables, Catalog.encode(blind.union(unseenTables(db)).sorted()))
        }
        let newlyIndexed = try KnownIndexes.tablesWithNewOnes(db).subtracting(blind)
        if extent.audits, !newlyIndexed.isEmpty { report.add(try Audit.run(db, only: newlyIndexed)) }
        try RowHashes.adoptMissing(db)
        try StaleCopy.noteTables(db)
        try remember(db)
        return blind
    }

    private static func unseenTables(_ db: Database) throws -> [Int64] {
        try Meta.text(db, MetaKey.unseenTables).map { try Catalog.decode([Int64].self, $0) } ?? []
    }

    /// Returns and clears the tables whose rows went and came unseen since the last call.
    package static func takeUnseenTables(_ db: Database) throws -> [Int64] {
        let tables = try unseenTables(db)
        if !tables.isEmpty { try Meta.set(db, MetaKey.unseenTables, nil) }
        return tables
    }

    /// Records that the current schema is known, its unique indexes, and which of its columns are references. If the
    /// rows of a table may still come back, the schema will be looked at again.
    static func remember(_ db: Database) throws {
        let noted = try Set(
            Row.fetchAll(db, sql: "SELECT entity, slot FROM \(InternalName.columns) WHERE referred").map {
                [$0["entity"] as Int64, $0["slot"]]
            })
        for entity in try Catalog.load(db).entities {
            for column in entity.columns where column.reference != nil {
                guard !noted.contains([entity.id, Int64(column.slot)]) else { continue }
                try db.execute(
                    sql: "UPDATE \(InternalName.columns) SET referred = 1 WHERE entity = ? AND slot = ?",
                    arguments: [entity.id, column.slot])
            }
        }
        try KnownIndexes.note(db)
        let known = try RecreatedTables.areAwaited(db) ? nil : version(db)
        try Meta.set(db, MetaKey.schemaVersion, known)
        try StoreSchema.noteTriggers(db, of: known)
    }

    /// Returns whether the entity's insert trigger exists. Another program may have dropped it, with its table or
    /// alone.
    static func isTriggered(_ db: Database, _ id: Int64) throws -> Bool { try trigger(db, id) != nil }

    private static func trigger(_ db: Database, _ id: Int64) throws -> (table: String, sql: String)? {
        try Row.fetchOne(
            db, sql: "SELECT tbl_name, sql FROM main.sqlite_schema WHERE type = 'trigger' AND name = ?",
            arguments: [InternalName.trigger(id, "insert")]
        ).map { ($0["tbl_name"], $0["sql"]) }
    }

    // MARK: Names of tables

    /// - Parameter findsRenamed: Whether to look for missing tables under another name.
    private static func followNames(_ db: Database, findsRenamed: Bool) throws {
        var moves: [(id: Int64, name: String, former: [String])] = []
        var taken = Set<String>()
        var untriggered: [Row] = []
        for row in try Row.fetchAll(
            db, sql: "SELECT id, name, former FROM \(InternalName.entities) WHERE state = 'tracked'")
        {
            // ALTER TABLE RENAME rewrites the triggers, so they have the new name.
            guard let table = try trigger(db, row["id"])?.table else {
                untriggered.append(row)
                continue
            }
            taken.insert(table)
            guard table != row["name"] as String else { continue }
            moves.append((row["id"], table, try Catalog.decode([String].self, row["former"]) + [row["name"]]))
        }
        let inspector = TableInspector(db)
        let tracked = Set(untriggered.map { $0["name"] as String })
        for row in untriggered {
            let name: String = row["name"]
            let former = try Catalog.decode([String].self, row["former"])
            // The table may have been renamed, recreated under the old name, and dropped under the new one: then it is
            // back where it was.
            let candidates = [name] + former.reversed()
            let found = try candidates.compactMap { try inspector.name(ignoringCase: $0) }.first { !taken.contains($0) }
            if let found {
                taken.insert(found)
                if found != name { moves.append((row["id"], found, former + [name])) }
            } else if findsRenamed,
                let renamed = try RenamedParts(db, row["id"]).table(except: taken.union(tracked))
            {
                taken.insert(renamed)
                moves.append((row["id"], renamed, former + [name]))
            } else if taken.contains(where: { $0.lowercased() == name.lowercased() }) {
                try stopTracking(db, row["id"], reason: "The table was dropped, and another one has its name.")
            }
        }
        // Use temporary names first, because names may be swapped.
        for move in moves {
            try db.execute(
                sql: "UPDATE \(InternalName.entities) SET name = ? WHERE id = ?",
                arguments: ["\(InternalName.prefix)renamed_\(move.id)", move.id])
        }
        for move in moves {
            try forgetLost(db, named: move.name)
            try db.execute(
                sql: "UPDATE \(InternalName.entities) SET name = ?, former = ? WHERE id = ?",
                arguments: [move.name, try Catalog.encode(move.former.filter { $0 != move.name }), move.id])
        }
    }

    /// Frees the name of a lost entity, in upper or lower case, for another table. The entity's ID stays in use: its
    /// changes are in the history.
    static func forgetLost(_ db: Database, named name: String) throws {
        let lost = try Int64.fetchAll(
            db, sql: "SELECT id FROM \(InternalName.entities) WHERE lower(name) = lower(?) AND state <> 'tracked'",
            arguments: [name])
        try RowHashes.forget(db, lost)
        for id in lost {
            try SkippedChanges.forget(db, id)
            try RecreatedTables.forget(db, id)
        }
        try db.execute(
            sql: """
                UPDATE \(InternalName.entities) SET state = 'replaced', name = '\(InternalName.prefix)replaced_' || id
                WHERE lower(name) = lower(?) AND state <> 'tracked'
                """, arguments: [name])
    }

    /// Returns the entity of a table that exists again, and whose missing rows may still come back. It is tracked again
    /// after that.
    static func awaitedEntity(_ db: Database, _ table: TableInspector.Table) throws -> Int64? {
        guard table.kind == "table" else { return nil }
        return try Int64.fetchAll(
            db, sql: "SELECT id FROM \(InternalName.entities) WHERE lower(name) = lower(?) AND state = 'lost'",
            arguments: [table.name]
        ).first { id in
            try RecreatedTables.isKnown(db, id) && problem(db, id, table) == nil && columnProblem(db, id, table) == nil
        }
    }

    /// Runs `body` as if the entity of such a table were tracked.
    static func withTracked<T>(_ db: Database, _ id: Int64, _ body: (Entity) throws -> T) throws -> T? {
        try db.execute(sql: "UPDATE \(InternalName.entities) SET state = 'tracked' WHERE id = ?", arguments: [id])
        let result = Result { try Catalog.load(db)[id].map(body) }
        try db.execute(sql: "UPDATE \(InternalName.entities) SET state = 'lost' WHERE id = ?", arguments: [id])
        return try result.get()
    }

    // MARK: One table

    private enum Outcome { case followed, missing, blind }

    /// - Parameter outrun: The tables with a user trigger that is newer than a capture trigger.
    private static func followTable(
        _ db: Database, _ id: Int64, _ outrun: Set<String>, givesUpMissing: Bool
    ) throws -> Outcome {
        guard
            let row = try Row.fetchOne(
                db, sql: "SELECT name, identity FROM \(InternalName.entities) WHERE id = ?", arguments: [id])
        else { return .missing }
        guard let table = try TableInspector(db).table(row["name"]), table.kind == "table" else {
            if givesUpMissing { try stopTracking(db, id, reason: "The table was dropped.") }
            return .missing
        }
        if let problem = try columnProblem(db, id, table) {
            if givesUpMissing { try stopTracking(db, id, reason: problem) }
            return .missing
        }
        let trigger = try trigger(db, id)
        let names =
            try trigger.map { TriggerReader.columnNames($0.sql) } ?? RenamedParts(db, id).columns(table)
        let added = try recordColumns(
            db, entity: id, identity: try Catalog.decode(IdentityRule.self, row["identity"]), table, namesBySlot: names)
        if let problem = try problem(db, id, table) {
            if givesUpMissing { try stopTracking(db, id, reason: problem) }
            return .missing
        }
        if let problem = try TableProbe.missingPart(db, of: table.name) {
            if givesUpMissing { try setLost(db, id, reason: "Martlet can't write to it: \(problem).") }
            return .missing
        }
        try logAdded(db, id, added, table)
        // What such a trigger wrote is in the log ahead of the change that fired it.
        guard !outrun.contains(table.name) else { return .blind }
        return try hasTriggers(db, id) ? .followed : .blind
    }

    /// Returns whether all triggers exist without which changes would go unseen. Another program may have dropped one.
    private static func hasTriggers(_ db: Database, _ id: Int64) throws -> Bool {
        guard let entity = try Catalog.load(db)[id] else { return true }
        let names = Set(
            try String.fetchAll(
                db, sql: "SELECT name FROM main.sqlite_schema WHERE type = 'trigger' AND name GLOB ?",
                arguments: [InternalName.trigger(id, "*")]
            ).map(\.quotedName))
        // A new column may need one more trigger: then all rows are compared, and found unchanged.
        return CaptureTriggers(entity).capturing.allSatisfy(names.contains)
    }

    private static func stopTracking(_ db: Database, _ id: Int64, reason: String) throws {
        try RecreatedTables.noteLost(db, id)
        try setLost(db, id, reason: reason)
    }

    private static func awaitRows(_ db: Database, _ id: Int64) throws {
        try setLost(db, id, reason: "The table was recreated without some of its rows. They may come back.")
    }

    private static func setLost(_ db: Database, _ id: Int64, reason: String) throws {
        try SkippedChanges.noteLost(db, id)
        try db.execute(
            sql: "UPDATE \(InternalName.entities) SET state = 'lost', reason = ? WHERE id = ?", arguments: [reason, id])
    }

    /// Resumes tracking of tables that are back. A program may rebuild a table in several transactions.
    ///
    /// - Parameter patience: How long to leave a table alone that lacks rows.
    private static func resumeLost(_ db: Database, patience: Duration) throws {
        let inspector = TableInspector(db)
        for row in try Row.fetchAll(
            db, sql: "SELECT id, name, former FROM \(InternalName.entities) WHERE state = 'lost'")
        {
            let name: String = row["name"]
            guard let found = try inspector.name(ignoringCase: name) else { continue }
            guard try canResume(db, row["id"], found) else {
                try RecreatedTables.forget(db, row["id"])
                continue
            }
            let former = try Catalog.decode([String].self, row["former"]) + (found == name ? [] : [name])
            try db.execute(
                sql: """
                    UPDATE \(InternalName.entities) SET state = 'tracked', reason = NULL, name = ?, former = ?
                    WHERE id = ?
                    """, arguments: [found, try Catalog.encode(former), row["id"] as Int64])
            try resume(db, row["id"], patience: patience)
        }
    }

    /// Logs the changes again that stamping has skipped, unless the table has to wait for rows.
    private static func resume(_ db: Database, _ id: Int64, patience: Duration) throws {
        let last = try db.lastChange()
        try SkippedChanges.logAgain(db, id)
        guard try RecreatedTables.isAwaited(db, id, wasLost: true, patience: patience) else {
            return try SkippedChanges.forget(db, id)
        }
        // Otherwise each check of the table would log them again.
        try db.execute(sql: "DELETE FROM \(InternalName.log) WHERE id > ?", arguments: [last])
        try awaitRows(db, id)
    }

    // MARK: Columns

    /// Logs values that were written to columns before the triggers knew them. A row with the default was not written
    /// to. But a default that differs each time (`CURRENT_TIMESTAMP`) is logged, or every node would have its own
    /// value.
    private static func logAdded(_ db: Database, _ id: Int64, _ added: [String], _ table: TableInspector.Table) throws {
        guard !added.isEmpty, let entity = try Catalog.load(db)[id] else { return }
        var conditions: [(slot: Int, condition: String?)] = []
        var values = ""
        for column in entity.columns {
            let name = column.name.quotedName
            guard added.contains(column.name) else {
                conditions.append((column.slot, nil))
                values += entity.identityColumns.contains(column) ? ", \(name)" : ", NULL"
                continue
            }
            let known = table.columns.first { $0.name == column.name }
            let initial = "(\(known?.defaultSQL ?? "NULL"))"
            var differs = known?.isDefaultConstant ?? true ? "\(name) IS NOT \(initial) COLLATE BINARY" : "1"
            // Without affinity, 1 and 1.0 are equal, but not the same value.
            if differs != "1", column.hasNoAffinity {
                differs = "(\(differs) OR typeof(\(name)) <> typeof\(initial))"
            }
            conditions.append((column.slot, differs))
            values += ", CASE WHEN \(differs) THEN \(name) END"
        }
        let any = conditions.compactMap { $0.condition.map { "(\($0))" } }.balanced(" OR ")
        guard !any.isEmpty else { return }
        try db.execute(
            sql: """
                INSERT INTO \(InternalName.log)(e, r, k, m, t\(entity.columns.map { ", c\($0.slot)" }.joined()))
                SELECT \(id), \(entity.integerKey?.quotedName ?? "NULL"), \(ChangeKind.update.code), \
                \(ChangeMask.expression(conditions)), \(CaptureTriggers.now)\(values)
                FROM \(table.name.storeTable) WHERE \(any)
                """)
    }

    /// Records the columns of a table. New columns get a new slot, renamed ones keep theirs, dropped ones are marked.
    ///
    /// - Returns: The new columns.
    @discardableResult
    static func recordColumns(
        _ db: Database, entity: Int64, identity: IdentityRule, _ table: TableInspector.Table,
        namesBySlot: [Int: String] = [:]
    ) throws -> [String] {
        let names: [String] = if case .columns(let names) = identity { names } else { [] }
        let last = try db.lastChange()
        var captured = table.columns.filter { !$0.isGenerated }.map(\.name)
        let recorded = try Row.fetchAll(
            db, sql: "SELECT * FROM \(InternalName.columns) WHERE entity = ? AND dropped IS NULL", arguments: [entity])
        var renamed: [Int: String] = [:]
        for row in recorded {
            let slot: Int = row["slot"]
            let old: String = row["name"]
            // A rebuilt table may have the same names with different case.
            let folded = captured.first { $0 != old && $0.lowercased() == old.lowercased() }
            if let new = namesBySlot[slot] ?? folded, new != old, captured.contains(new) {
                renamed[slot] = new
                captured.removeAll { $0 == new }
            } else if captured.contains(old) {
                captured.removeAll { $0 == old }
            } else {
                try db.execute(
                    sql: "UPDATE \(InternalName.columns) SET dropped = ? WHERE entity = ? AND slot = ?",
                    arguments: [last + 1, entity, slot])
            }
        }
        let identityNames = try rename(db, entity: entity, columns: renamed, identity: names)
        if let key = table.integerKey, !identityNames.contains(key) {
            captured.removeAll { $0 == key }
        }
        var slot =
            try Int.fetchOne(
                db, sql: "SELECT coalesce(max(slot), 0) FROM \(InternalName.columns) WHERE entity = ?",
                arguments: [entity]) ?? 0
        // For rows that existed before the table was tracked, no clock could stand for a column.
        let added: Int64? = slot == 0 ? 0 : nil
        for name in captured {
            slot += 1
            try db.execute(
                sql: "INSERT INTO \(InternalName.columns)(entity, slot, name, since, added) VALUES (?, ?, ?, ?, ?)",
                arguments: [entity, slot, name, last + 1, added])
            if added == nil {
                let known = table.columns.first { $0.name == name }
                guard known?.isDefaultConstant ?? true else { continue }
                try RowHashes.setInitial(db, entity, slot: slot, known?.defaultSQL ?? "NULL")
            }
        }
        try StoreSchema.ensureSlots(db, upTo: slot)
        return captured
    }

    /// Renames columns, by slot.
    ///
    /// - Parameter identity: The identity columns.
    /// - Returns: The new names of the identity columns.
    @discardableResult
    static func rename(
        _ db: Database, entity: Int64, columns: [Int: String], identity: [String]
    ) throws -> [String] {
        var names: [String: String] = [:]
        for (slot, new) in columns {
            guard
                let row = try Row.fetchOne(
                    db, sql: "SELECT name, former FROM \(InternalName.columns) WHERE entity = ? AND slot = ?",
                    arguments: [entity, slot])
            else { continue }
            let old: String = row["name"]
            names[old] = new
            try db.execute(
                sql: "UPDATE \(InternalName.columns) SET name = ?, former = ? WHERE entity = ? AND slot = ?",
                arguments: [
                    new, try Catalog.encode(Catalog.decode([String].self, row["former"]) + [old]), entity, slot,
                ])
        }
        let renamed = identity.map { names[$0] ?? $0 }
        guard renamed != identity else { return identity }
        try db.execute(
            sql: "UPDATE \(InternalName.entities) SET identity = ? WHERE id = ?",
            arguments: [try Catalog.encode(IdentityRule.columns(renamed)), entity])
        return renamed
    }

    // MARK: Triggers

    /// Brings every trigger up to date, in the caller's transaction, so that no write goes unseen.
    package static func reinstallTriggers(_ db: Database) throws {
        let catalog = try Catalog.load(db)
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT name, sql FROM main.sqlite_schema WHERE type = 'trigger'
                AND name LIKE '\\_martlet\\_%' ESCAPE '\\'
                """)
        let present = Dictionary(
            rows.map { ($0["name"] as String, $0["sql"] as String) }, uniquingKeysWith: { a, _ in a })
        let outrun = try outrunTables(db)
        var wantedNames = Set<String>()
        for entity in catalog.entities where entity.hasIdentity {
            let wanted = CaptureTriggers(entity).statements
            let names = CaptureTriggers.names(entity.id)
            wantedNames.formUnion(names)
            guard outrun.contains(entity.name) || Set(names.compactMap { present[$0] }) != Set(wanted) else { continue }
            try StoreSchema.createSide(db, entity)
            // The notes have the columns of the old triggers.
            try db.execute(sql: "DELETE FROM \(InternalName.replaced) WHERE abs(e) = ?", arguments: [entity.id])
            for name in names where present[name] != nil { try dropTrigger(db, name) }
            for statement in wanted { try createTrigger(db, statement) }
        }
        let known = try Int64.fetchAll(db, sql: "SELECT id FROM \(InternalName.entities)").flatMap(
            CaptureTriggers.names)
        for name in known where present[name] != nil && !wantedNames.contains(name) {
            try dropTrigger(db, name)
        }
    }

    /// Names the schema: if the connection has a temporary table of the same name, the trigger would be on that one.
    /// SQLite stores the statement without it.
    private static func createTrigger(_ db: Database, _ statement: String) throws {
        let create = "CREATE TRIGGER "
        try db.execute(sql: create + "main." + statement.dropFirst(create.count))
    }

    private static func dropTrigger(_ db: Database, _ name: String) throws {
        try db.execute(sql: "DROP TRIGGER IF EXISTS main.\(name.quotedName)")
    }

    /// Returns the tables with a user trigger that is newer than a capture trigger. SQLite runs the newest first, so
    /// effects of the user trigger are logged before the change that caused them.
    ///
    /// SQLite stores the table's name as the trigger's statement has it, in any case.
    private static func outrunTables(_ db: Database) throws -> Set<String> {
        try String.fetchSet(
            db,
            sql: """
                SELECT e.name FROM \(InternalName.entities) AS e JOIN main.sqlite_schema AS s
                ON s.type = 'trigger' AND s.tbl_name = e.name COLLATE NOCASE
                WHERE e.state = 'tracked' GROUP BY e.id
                HAVING max(CASE WHEN s.name NOT LIKE '\\_martlet\\_%' ESCAPE '\\' THEN s.rowid END)
                > min(CASE WHEN s.name LIKE '\\_martlet\\_%' ESCAPE '\\' THEN s.rowid END)
                """)
    }

    /// Drops the capture triggers, for a schema change that SQLite refuses while they exist. The caller creates them
    /// again in the same transaction.
    static func dropTriggers(_ db: Database) throws {
        for id in try Int64.fetchAll(db, sql: "SELECT id FROM \(InternalName.entities)") {
            for name in CaptureTriggers.names(id) { try dropTrigger(db, name) }
        }
    }
}
