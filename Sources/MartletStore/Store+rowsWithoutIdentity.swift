import GRDB

extension Store {
    /// Returns the number of rows with NULL in an identity column, by table. NULL equals nothing, so other nodes
    /// couldn't tell which row is meant: such a row is not synced until its key has a value.
    ///
    /// May read a whole index of each table whose key has several columns.
    public func rowsWithoutIdentity() throws -> [String: Int] {
        try read { db in
            var counts: [String: Int] = [:]
            for entity in try Catalog.load(db).entities where entity.hasIdentity {
                let count = try Self.rowsWithoutIdentity(db, entity)
                if count > 0 { counts[entity.name] = count }
            }
            return counts
        }
    }

    private static func rowsWithoutIdentity(_ db: Database, _ entity: Entity) throws -> Int {
        let columns = entity.identityColumns.filter { !$0.isNotNull && $0.name != entity.integerKey }
        guard !columns.isEmpty else { return 0 }
        let isNull = columns.map { "t.\($0.name.quotedName) IS NULL" }.joined(separator: " OR ")
        var condition = "(\(isNull))"
        if let key = entity.localKey {
            // Rows that came later have an ID assigned by Martlet.
            condition += """
                 AND EXISTS (SELECT 1 FROM \(InternalName.side(entity.id)) AS s
                WHERE s.row = t.\(key.quotedName) AND s.ident IS NULL)
                """
        }
        return try Int.fetchOne(
            db, sql: "SELECT count(*) FROM \(entity.name.storeTable) AS t WHERE \(condition)") ?? 0
    }
}
