import GRDB

/// Whether a table can be tracked as the entity that it was, or that it is.
extension SchemaFollower {
    /// Returns the reason why the table's rows can't have the IDs that they had. Nil if they can.
    static func problem(_ db: Database, _ id: Int64, _ table: TableInspector.Table) throws -> String? {
        let identity = try Catalog.decode(
            IdentityRule.self,
            try String.fetchOne(db, sql: "SELECT identity FROM \(InternalName.entities) WHERE id = ?", arguments: [id])
                ?? "")
        switch identity {
        case .hidden:
            if table.integerKey == nil { return "The table no longer has an INTEGER PRIMARY KEY. Attach it again." }
        case .columns(let names):
            let missing = names.filter { name in
                !table.columns.contains { $0.name.lowercased() == name.lowercased() && !$0.isGenerated }
            }
            if !missing.isEmpty {
                return "Its identity column \(missing.joined(separator: ", ")) is gone. Attach it again."
            }
            // The clocks are stored by integer key where the table has one, and by ID otherwise.
            let side = InternalName.side(id)
            let isKeyed = try Bool.fetchOne(
                db, sql: "SELECT EXISTS (SELECT 1 FROM pragma_table_info(?) WHERE name = 'row')", arguments: [side])
            if try db.hasTable(side), isKeyed != (table.integerKey != nil) {
                let what = table.integerKey == nil ? "no longer has its" : "now has an"
                return "The table \(what) INTEGER PRIMARY KEY. Attach it again."
            }
        }
        return nil
    }

    /// Returns the reason why the history can't hold the columns that the table has now. Nil if it can.
    static func columnProblem(_ db: Database, _ id: Int64, _ table: TableInspector.Table) throws -> String? {
        guard !table.hasEqualColumnNames else {
            return "Two of its columns have names that differ only in their Unicode encoding. Rename one of them, and "
                + "attach it again."
        }
        let known = Set(
            try String.fetchAll(
                db, sql: "SELECT name FROM \(InternalName.columns) WHERE entity = ? AND dropped IS NULL",
                arguments: [id]))
        let added = table.columns.filter { !known.contains($0.name) && !$0.isGenerated }.count
        guard added > 0 else { return nil }
        let slot =
            try Int.fetchOne(
                db, sql: "SELECT max(slot) FROM \(InternalName.columns) WHERE entity = ?", arguments: [id]) ?? 0
        let most = try StoreSchema.maxColumnCount(db)
        guard slot + added > most else { return nil }
        return "The history can hold at most \(most) columns of a table, those that it had before included. Attach it "
            + "again, or split it into two tables."
    }

    /// Returns whether a lost entity can be tracked again as this table. It may be a virtual table, lack the key, or be
    /// another tracked one.
    static func canResume(_ db: Database, _ id: Int64, _ name: String) throws -> Bool {
        guard let table = try TableInspector(db).table(name), table.kind == "table" else { return false }
        // The other table's name may differ in case.
        let isTaken = try Bool.fetchOne(
            db,
            sql: """
                SELECT EXISTS (SELECT 1 FROM \(InternalName.entities)
                WHERE state = 'tracked' AND id <> ? AND lower(name) = lower(?))
                """, arguments: [id, name])
        return try isTaken != true && problem(db, id, table) == nil && columnProblem(db, id, table) == nil
            && TableProbe.missingPart(db, of: table.name) == nil
    }
}
