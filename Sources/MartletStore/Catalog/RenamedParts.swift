import GRDB

/// Finds columns, or the table itself, that were renamed by a rebuild. Some tools can't rename in place and create the
/// table again, or do both in one transaction. A name that is gone and a new one are the same if the rows match their
/// value hashes (docs/decisions/0042).
///
/// Confined to its connection, in the caller's transaction. Changes nothing.
struct RenamedParts {
    private let db: Database
    private let id: Int64

    init(_ db: Database, _ id: Int64) {
        self.db = db
        self.id = id
    }

    // MARK: Columns

    /// Returns the new names of columns by slot, as far as there is no doubt.
    func columns(_ table: TableInspector.Table) throws -> [Int: String] {
        let recorded = try Row.fetchAll(
            db, sql: "SELECT slot, name FROM \(InternalName.columns) WHERE entity = ? AND dropped IS NULL",
            arguments: [id]
        ).map { (slot: $0["slot"] as Int, name: $0["name"] as String) }
        let names = Set(recorded.map { $0.name.lowercased() })
        let present = table.columns.filter { !$0.isGenerated }
        var fresh = present.filter { !names.contains($0.name.lowercased()) && $0.name != table.integerKey }
        let gone = recorded.filter { old in !present.contains { $0.name.lowercased() == old.name.lowercased() } }
        guard !fresh.isEmpty, !gone.isEmpty else { return [:] }
        let identity = try identityNames()
        let keys = gone.filter { identity.contains($0.name) }
        var found: [Int: String] = [:]
        // Find key columns first: then rows can be told apart.
        for column in keys + gone.filter({ !identity.contains($0.name) }) {
            let isKey = identity.contains(column.name)
            let same = try fresh.filter { try isSame($0, column.slot, isKey: isKey, renamed: found) }
            guard same.count == 1 else { continue }
            found[column.slot] = same[0].name
            fresh.removeAll { $0.name == same[0].name }
        }
        return found
    }

    private func identityNames() throws -> [String] {
        let json = try String.fetchOne(
            db, sql: "SELECT identity FROM \(InternalName.entities) WHERE id = ?", arguments: [id])
        guard let json, case .columns(let names) = try Catalog.decode(IdentityRule.self, json) else { return [] }
        return names
    }

    private func rename(_ columns: [Int: String]) throws {
        try SchemaFollower.rename(db, entity: id, columns: columns, identity: identityNames())
    }

    private func isSame(
        _ column: TableInspector.Column, _ slot: Int, isKey: Bool, renamed: [Int: String]
    ) throws -> Bool {
        let names = renamed.merging([slot: column.name]) { $1 }
        return try trying({ try rename(names) }) { entity, table in
            let agreement = try table.agreement(slot: slot, unless: column.isDefaultConstant ? column.defaultSQL : nil)
            if isKey, !entity.isKeyedByInteger { return agreement.isWhole }
            return agreement.differing == 0 && agreement.telling > 0
        }
    }

    // MARK: Tables

    /// Returns the new name of a table that is gone: the one table that has all of its rows, if there is exactly one.
    ///
    /// - Parameter taken: The names of tables known to be other ones.
    func table(except taken: Set<String>) throws -> String? {
        let recorded = Set(
            try String.fetchAll(
                db, sql: "SELECT lower(name) FROM \(InternalName.columns) WHERE entity = ? AND dropped IS NULL",
                arguments: [id]))
        let isKnown = try StaleCopy.knownTables(db)
        let inspector = TableInspector(db)
        var found: [String] = []
        for name in try inspector.userTables() where try !taken.contains(name) && !isKnown(name, page(name)) {
            guard let table = try inspector.table(name) else { continue }
            let shared = recorded.intersection(table.columns.map { $0.name.lowercased() })
            guard shared.count * 2 >= recorded.count, try isSame(table) else { continue }
            found.append(name)
        }
        return found.count == 1 ? found[0] : nil
    }

    private func page(_ name: String) throws -> Int64 {
        try Int64.fetchOne(
            db, sql: "SELECT rootpage FROM main.sqlite_schema WHERE type = 'table' AND name = ?", arguments: [name])
            ?? 0
    }

    private func isSame(_ copy: TableInspector.Table) throws -> Bool {
        try trying({
            try SchemaFollower.forgetLost(db, named: copy.name)
            try db.execute(
                sql: "UPDATE \(InternalName.entities) SET name = ? WHERE id = ?", arguments: [copy.name, id])
            try rename(try columns(copy))
        }) { entity, table in
            // A table that was created from a query (`CREATE TABLE ... AS`) has no key, and is a copy.
            let names = entity.identityColumns.map(\.name)
            guard entity.hasIdentity, names.isEmpty || copy.isUnique(names) else { return false }
            let agreement = try table.agreement(slot: nil, unless: nil)
            return agreement.isWhole && agreement.differing == 0 && agreement.telling > 0
        }
    }

    /// Runs `body` as if the renaming had happened, then rolls back.
    private func trying(_ rename: () throws -> Void, _ body: (Entity, RebuiltTable) throws -> Bool) throws -> Bool {
        var result = false
        try db.inSavepoint {
            try rename()
            let catalog = try Catalog.load(db)
            if let entity = catalog[id] {
                try RowHashes.advance(db, through: db.lastChange(), only: [id])
                result = try body(entity, RebuiltTable(db, entity, Audit.resolver(db, catalog, [entity])))
            }
            return .rollback
        }
        return result
    }
}
