package import GRDB

/// A tracked table, and a request that may change its settings.
///
/// The identity of a row is fixed when it is inserted: a new rule applies only to new rows (docs/decisions/0011).
struct TrackedTable {
    let db: Database
    let entity: Entity
    let request: AttachRequest

    init(_ db: Database, _ entity: Entity, _ request: AttachRequest) {
        self.db = db
        self.entity = entity
        self.request = request
    }

    /// - Returns: True if anything changed.
    func change() throws -> Bool {
        var hasChanged = try FormerNames.record(db, entity, request)
        guard let table = try TableInspector(db).table(entity.name) else { return hasChanged }
        let identity =
            try request.identity(of: entity.name).map {
                try IdentityChooser(table: table, declared: $0).choose()
            } ?? entity.identity
        // Never switched off, and switched on only by a request that names the table: the default says nothing.
        let isNamed = request.namedTables.contains(entity.name.lowercased())
        let keepsOldValues = entity.keepsOldValues || (isNamed && request.keepsOldValues)
        if identity != entity.identity || keepsOldValues != entity.keepsOldValues {
            if identity != entity.identity { try check(identity) }
            try change(to: identity, keepsOldValues: keepsOldValues)
            hasChanged = true
        }
        if let policy = request.value(request.uniquePolicies, entity.name), policy != entity.uniquePolicy {
            try db.execute(
                sql: "UPDATE \(InternalName.entities) SET unique_policy = ? WHERE id = ?",
                arguments: [policy.rawValue, entity.id])
            hasChanged = true
        }
        return hasChanged
    }

    /// Does the same for a table whose missing rows may still come back. Its identity can't be changed yet: rows would
    /// count as deleted.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.busy` for a request that changes the identity.
    func changeAwaited() throws -> Bool {
        if let declared = request.identity(of: entity.name), let table = try TableInspector(db).table(entity.name),
            try IdentityChooser(table: table, declared: declared).choose() != entity.identity
        {
            throw StoreError(
                .busy,
                """
                Table \(entity.name) was recreated without some of its rows, which may still come back. Until then, \
                its identity can't be changed.
                """,
                hint: "Attach it again in a few seconds.")
        }
        return try change()
    }

    /// Rows without an integer key are addressed by their identity columns, so their IDs can't outlive those.
    private func check(_ identity: IdentityRule) throws {
        let isInteger =
            if case .columns(let names) = identity, let key = entity.integerKey { names.contains(key) } else { false }
        guard entity.isKeyedByInteger, entity.localKey != nil, !isInteger else {
            throw StoreError(
                .notTrackable,
                "The identity of table \(entity.name) can't be changed to or from its primary key.",
                hint: "Create a new table with an INTEGER PRIMARY KEY that is not the identity, and copy the rows.")
        }
    }

    private func change(to identity: IdentityRule, keepsOldValues: Bool) throws {
        let next = try db.lastChange() + 1
        let rule = FormerRule(until: next, slots: try slots(), keepsOldValues: entity.keepsOldValues)
        // If the rule was changed twice without a write in between, the rule in between applied to no change.
        let rules = entity.formerRules.last?.until == next ? entity.formerRules : entity.formerRules + [rule]
        try db.execute(
            sql: "UPDATE \(InternalName.entities) SET identity = ?, old_values = ?, former_rules = ? WHERE id = ?",
            arguments: [
                try Catalog.encode(identity), keepsOldValues, try Catalog.encode(rules), entity.id,
            ])
        guard identity != entity.identity else { return }
        try db.execute(sql: "DELETE FROM \(InternalName.side(entity.id)) WHERE ident IS NULL")
        try RecordedNames.begin(db, entity, under: identity)
        // Rows that their columns could not identify were never synced, and get an ID now.
        if entity.identity != .hidden { _ = try Audit.run(db, only: [entity.id]) }
    }

    /// Returns the slots of the current identity columns in the log.
    private func slots() throws -> [Int]? {
        guard case .columns(let names) = entity.identity else { return nil }
        return try names.map { name in
            // A column that was dropped just now counts too.
            let slot = try Int.fetchOne(
                db,
                sql: """
                    SELECT slot FROM \(InternalName.columns) WHERE entity = ? AND name = ?
                    ORDER BY dropped IS NOT NULL, dropped DESC LIMIT 1
                    """, arguments: [entity.id, name])
            guard let slot else {
                throw StoreError(
                    .corrupt, "Martlet's catalog doesn't know column \(name) of table \(entity.name).",
                    hint: "Restore the file from a backup.")
            }
            return slot
        }
    }
}

/// Row IDs that are looked up, instead of computed from the columns.
package enum RecordedNames {
    /// Starts to look up the IDs of an entity's rows. All of them are already stored beside their clocks; what is
    /// missing is the index from ID to row.
    ///
    /// - Parameter identity: The identity rule for new rows.
    package static func begin(_ db: Database, _ entity: Entity, under identity: IdentityRule) throws {
        let side = InternalName.side(entity.id)
        let isHidden = identity == .hidden
        let isFollowed = try !SchemaFollower.hasChanged(db)
        try db.execute(
            sql: "UPDATE \(InternalName.entities) SET names = ? WHERE id = ?", arguments: [!isHidden, entity.id])
        try db.execute(sql: "DROP INDEX IF EXISTS \(isHidden ? side + "_names" : side + "_ident")")
        if isHidden {
            // Two entries can have the same ID only if one of the rows is gone from its table.
            try db.execute(
                sql: "DELETE FROM \(side) WHERE row NOT IN (SELECT max(row) FROM \(side) GROUP BY ident)")
        }
        if let entity = try Catalog.load(db)[entity.id] { try StoreSchema.createSide(db, entity) }
        // The index is the only change of the schema.
        if isFollowed { try SchemaFollower.remember(db) }
    }
}
