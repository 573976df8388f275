import GRDB
package import MartletStore

extension Store {
    /// The stable IDs that are stored for a table's rows, by integer key. Rows without one are left out.
    package func identities(of table: String) throws -> [Int64: StableID] {
        try read { db in
            let catalog = try Catalog.load(db)
            guard let entity = catalog[table], let key = entity.integerKey else {
                throw TestFailure("\(table) has no integer key")
            }
            let resolver = IdentityResolver(catalog: catalog, statements: StatementCache())
            var found: [Int64: StableID] = [:]
            let rows = try Int64.fetchAll(db, sql: "SELECT \(key.quotedName) FROM \(entity.name.quotedName)")
            for row in rows { found[row] = try resolver.keptIdentity(db, entity, row: row) }
            return found
        }
    }
}
