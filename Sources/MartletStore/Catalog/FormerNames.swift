import GRDB

/// Records the names that tables and columns have on other nodes, or had before.
enum FormerNames {
    /// Records the former names that the request has for this table.
    ///
    /// - Returns: True if any of them was new.
    @discardableResult
    static func record(_ db: Database, _ entity: Entity, _ request: AttachRequest) throws -> Bool {
        var isNews = false
        if let names = request.value(request.formerNames, entity.name) {
            let catalog = try Catalog.load(db)
            for name in names where catalog.entities.contains(where: { $0.name == name }) {
                throw StoreError(
                    .invalidArgument,
                    "\(name) can't be a former name of table \(entity.name): a tracked table has that name.",
                    hint: "Remove it.")
            }
            isNews = try add(names, to: entity.formerNames) {
                try db.execute(
                    sql: "UPDATE \(InternalName.entities) SET former = ? WHERE id = ?", arguments: [$0, entity.id])
            }
        }
        for (name, former) in request.value(request.formerColumnNames, entity.name) ?? [:] {
            guard let column = entity.columns.first(where: { $0.name.lowercased() == name.lowercased() }) else {
                throw StoreError(
                    .invalidArgument, "Table \(entity.name) has no captured column \(name).",
                    hint: "Use one of \(entity.columns.map(\.name).joined(separator: ", ")).")
            }
            for other in former where entity.columns.contains(where: { $0.name == other }) {
                throw StoreError(
                    .invalidArgument,
                    """
                    \(other) can't be a former name of column \(entity.name).\(column.name): the table has a column of \
                    that name.
                    """,
                    hint: "Rename it with ALTER TABLE ... RENAME COLUMN: Martlet follows that automatically.")
            }
            let added = try add(former, to: column.formerNames) {
                try db.execute(
                    sql: "UPDATE \(InternalName.columns) SET former = ? WHERE entity = ? AND slot = ?",
                    arguments: [$0, entity.id, column.slot])
            }
            isNews = isNews || added
        }
        // The change of the schema version tells connections that their copy of the catalog is outdated. The trigger
        // will be created again.
        if isNews {
            try db.execute(
                sql: "DROP TRIGGER IF EXISTS \(InternalName.trigger(entity.id, "insert").quotedName)")
        }
        return isNews
    }

    private static func add(_ names: [String], to known: [String], _ save: (String) throws -> Void) throws -> Bool {
        let new = names.filter { !known.contains($0) }
        guard !new.isEmpty else { return false }
        try save(try Catalog.encode(known + new))
        return true
    }
}
