import Foundation
package import GRDB

/// Notices what other programs did to the schema, and makes catalog and triggers follow.
///
/// SQLite counts schema changes in `schema_version`; one read of it tells that nothing happened.
package enum SchemaFollower {
    /// Brings catalog and triggers up to date, in the caller's transaction.
    ///
    /// - Parameter statements: the connection's own, where it asks often.
    /// - Returns: true when the schema had changed since the last call on this store.
    @discardableResult
    package static func follow(_ db: Database, using statements: SealStatements? = nil) throws -> Bool {
        if let statements, try statements.isSchemaFollowed() { return false }
        let current = try Int64.fetchOne(db.cachedStatement(sql: "PRAGMA main.schema_version"))
        guard try current != Meta.integer(db, MetaKey.schemaVersion) else { return false }
        try followTables(db, givesUpMissing: true)
        return true
    }

    /// Runs a script that changes the schema, with capture kept whole: what each statement does to tables is followed
    /// before the next one runs, so that a script that adds a column and fills it is captured.
    static func alter(_ db: Database, sql: String) throws {
        let statements = try db.allStatements(sql: sql)
        while let statement = try statements.next() {
            let before = try Int64.fetchOne(db, sql: "PRAGMA main.schema_version")
            do {
                try db.inSavepoint {
                    try statement.execute()
                    return .commit
                }
            } catch let error as DatabaseError where error.message?.contains("trigger \(InternalName.prefix)") == true {
                // DROP COLUMN is refused while a trigger names the column.
                try dropTriggers(db)
                try db.execute(sql: statement.sql)
            }
            if try Int64.fetchOne(db, sql: "PRAGMA main.schema_version") != before {
                try followTables(db, givesUpMissing: false)
            }
        }
        // A table that was made anew under its old name is there again by now.
        try followTables(db, givesUpMissing: true)
    }

    private static func followTables(_ db: Database, givesUpMissing: Bool) throws {
        for row in try Row.fetchAll(db, sql: "SELECT id, name, former, identity FROM \(InternalName.entities) WHERE state = 'tracked'") {
            try follow(db, row, givesUpMissing: givesUpMissing)
        }
        try reinstallTriggers(db)
        try remember(db)
    }

    /// Marks the schema as it is now as known.
    static func remember(_ db: Database) throws {
        try Meta.set(db, MetaKey.schemaVersion, try Int64.fetchOne(db, sql: "PRAGMA main.schema_version"))
    }

    private static func follow(_ db: Database, _ row: Row, givesUpMissing: Bool) throws {
        let id: Int64 = row["id"]
        let recordedName: String = row["name"]
        var name = recordedName
        // ALTER TABLE RENAME rewrites the triggers: they know the new name.
        let trigger = try Row.fetchOne(
            db, sql: "SELECT tbl_name, sql FROM main.sqlite_schema WHERE type = 'trigger' AND name = ?",
            arguments: [InternalName.trigger(id, "insert")])
        if let table: String = trigger?["tbl_name"], table != recordedName {
            name = table
            let former = try Catalog.decode([String].self, row["former"]) + [recordedName]
            try db.execute(
                sql: "UPDATE \(InternalName.entities) SET name = ?, former = ? WHERE id = ?",
                arguments: [name, try Catalog.encode(former), id])
        }
        guard let table = try TableInspector(db).table(name) else {
            if givesUpMissing { try stopTracking(db, id, reason: "The table was dropped.") }
            return
        }
        let identity = try Catalog.decode(IdentityRule.self, row["identity"])
        let renamed = trigger.map { renamedColumns($0["sql"]) } ?? [:]
        try recordColumns(db, entity: id, identity: identity, table, namesBySlot: renamed)
        try checkIdentity(db, id, table)
    }

    private static func checkIdentity(_ db: Database, _ id: Int64, _ table: TableInspector.Table) throws {
        let identity = try Catalog.decode(
            IdentityRule.self,
            try String.fetchOne(db, sql: "SELECT identity FROM \(InternalName.entities) WHERE id = ?", arguments: [id]) ?? "")
        switch identity {
        case .hidden where table.integerKey == nil:
            try stopTracking(db, id, reason: "The table no longer has an INTEGER PRIMARY KEY. Attach it again.")
        case .columns(let names):
            let missing = names.filter { name in !table.columns.contains { $0.name == name } }
            if !missing.isEmpty {
                try stopTracking(
                    db, id, reason: "Its identity column \(missing.joined(separator: ", ")) is gone. Attach it again.")
            }
        default: break
        }
    }

    private static func stopTracking(_ db: Database, _ id: Int64, reason: String) throws {
        try db.execute(
            sql: "UPDATE \(InternalName.entities) SET state = 'lost', reason = ? WHERE id = ?", arguments: [reason, id])
    }

    /// Records the columns of a table: new ones get a slot of their own, renamed ones keep theirs, dropped ones are marked.
    static func recordColumns(
        _ db: Database, entity: Int64, identity: IdentityRule, _ table: TableInspector.Table,
        namesBySlot: [Int: String] = [:]
    ) throws {
        let names: [String] = if case .columns(let names) = identity { names } else { [] }
        let last = try Int64.fetchOne(db, sql: "SELECT max(id) FROM \(InternalName.log)") ?? 0
        var captured = table.columns.filter { !$0.isGenerated }.map(\.name)
        let recorded = try Row.fetchAll(
            db, sql: "SELECT * FROM \(InternalName.columns) WHERE entity = ? AND dropped IS NULL", arguments: [entity])
        for row in recorded {
            let slot: Int = row["slot"]
            let old: String = row["name"]
            if let new = namesBySlot[slot], new != old, captured.contains(new) {
                let former = try Catalog.decode([String].self, row["former"]) + [old]
                try db.execute(
                    sql: "UPDATE \(InternalName.columns) SET name = ?, former = ? WHERE entity = ? AND slot = ?",
                    arguments: [new, try Catalog.encode(former), entity, slot])
                try renameIdentity(db, entity, from: old, to: new)
                captured.removeAll { $0 == new }
            } else if captured.contains(old) {
                captured.removeAll { $0 == old }
            } else {
                try db.execute(
                    sql: "UPDATE \(InternalName.columns) SET dropped = ? WHERE entity = ? AND slot = ?",
                    arguments: [last + 1, entity, slot])
            }
        }
        if let key = table.integerKey, !names.contains(key) { captured.removeAll { $0 == key } }
        var slot = try Int.fetchOne(
            db, sql: "SELECT coalesce(max(slot), 0) FROM \(InternalName.columns) WHERE entity = ?", arguments: [entity]) ?? 0
        for name in captured {
            slot += 1
            try db.execute(
                sql: "INSERT INTO \(InternalName.columns)(entity, slot, name, since) VALUES (?, ?, ?, ?)",
                arguments: [entity, slot, name, last + 1])
        }
        try StoreSchema.ensureSlots(db, upTo: slot)
    }

    private static func renameIdentity(_ db: Database, _ entity: Int64, from old: String, to new: String) throws {
        guard
            let json = try String.fetchOne(
                db, sql: "SELECT identity FROM \(InternalName.entities) WHERE id = ?", arguments: [entity]),
            case .columns(let names) = try Catalog.decode(IdentityRule.self, json), names.contains(old)
        else { return }
        let identity = IdentityRule.columns(names.map { $0 == old ? new : $0 })
        try db.execute(
            sql: "UPDATE \(InternalName.entities) SET identity = ? WHERE id = ?",
            arguments: [try Catalog.encode(identity), entity])
    }

    /// The names that the insert trigger gives to the columns: ALTER TABLE RENAME COLUMN rewrites them, so that the
    /// trigger tells which column is which.
    static func renamedColumns(_ sql: String) -> [Int: String] {
        guard let values = sql.range(of: "\nVALUES (", options: .backwards),
            let open = sql.range(of: "(e, r, k, t", options: .backwards, range: sql.startIndex..<values.lowerBound),
            let close = sql.range(of: ")", range: open.upperBound..<values.lowerBound)
        else { return [:] }
        let slots = sql[open.upperBound..<close.lowerBound].split(separator: ",").compactMap {
            Int($0.trimmingCharacters(in: .whitespaces).dropFirst())
        }
        var names: [String] = []
        var rest = sql[values.upperBound...]
        while let start = rest.range(of: "NEW.\"") {
            var name = ""
            var index = start.upperBound
            while index < rest.endIndex {
                if rest[index] == "\"" {
                    let next = rest.index(after: index)
                    guard next < rest.endIndex, rest[next] == "\"" else { break }
                    index = next
                }
                name.append(rest[index])
                index = rest.index(after: index)
            }
            names.append(name)
            rest = rest[index...]
        }
        // The first is the integer key, where there is one.
        return Dictionary(zip(slots, names.suffix(slots.count)), uniquingKeysWith: { first, _ in first })
    }

    /// Makes every trigger what it should be, in the caller's transaction, so that no write goes unseen.
    package static func reinstallTriggers(_ db: Database) throws {
        let catalog = try Catalog.load(db)
        let rows = try Row.fetchAll(
            db, sql: "SELECT name, sql FROM main.sqlite_schema WHERE type = 'trigger' AND name LIKE '\\_martlet\\_%' ESCAPE '\\'")
        let present = Dictionary(rows.map { ($0["name"] as String, $0["sql"] as String) }, uniquingKeysWith: { a, _ in a })
        for entity in catalog.entities {
            let wanted = CaptureTriggers(entity).statements
            let names = CaptureTriggers.names(entity.id)
            guard Set(names.compactMap { present[$0] }) != Set(wanted) else { continue }
            try StoreSchema.createSide(db, entity)
            for name in names { try db.execute(sql: "DROP TRIGGER IF EXISTS \(name.quotedName)") }
            for statement in wanted { try db.execute(sql: statement) }
        }
    }

    /// Takes the triggers away, for a change of the schema that SQLite refuses while they stand. The caller makes them
    /// anew in the same transaction.
    static func dropTriggers(_ db: Database) throws {
        for name in try String.fetchAll(
            db, sql: "SELECT name FROM main.sqlite_schema WHERE type = 'trigger' AND name LIKE '\\_martlet\\_%' ESCAPE '\\'")
        {
            try db.execute(sql: "DROP TRIGGER \(name.quotedName)")
        }
    }
}
