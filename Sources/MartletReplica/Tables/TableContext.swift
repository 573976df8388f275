import GRDB
package import MartletStore

/// What reading and writing the rows of tables knows of the store: the catalog, and the owners of clocks, stable IDs
/// and log. Nothing here can be replaced.
///
/// Confined to its connection. Recreated after a rollback, since parts of it may be ahead of the file.
package final class TableContext {
    package let catalog: Catalog
    package let statement = StatementCache()
    package let resolver: IdentityResolver
    package let encoding: TextEncoding
    package let valueKeys: ValueKeys
    /// What the user's triggers derive from tables. Nil for contexts that only read.
    package let derived: DerivedWrites?
    package let nodes: NodeDirectory
    package let additions: ColumnAdditions
    package let clocks: ClockCoding
    package let recent: RecentEntries
    package let tombstones: Tombstones
    package let numbers: RowNumbers
    /// What the applier has logged.
    package let applied: AppliedLog
    /// The wall clock of the engine, in milliseconds since 1970.
    package let now: @Sendable () -> Int64
    private var tables: [Int64: EntityTable] = [:]
    private var tablesByName: [String: EntityTable] = [:]
    /// True if this connection itself has changed the schema since the context was made.
    private(set) var hasChangedSchema = false

    init(
        _ db: Database, _ catalog: Catalog, derived: DerivedWrites?, applied: AppliedLog,
        now: @escaping @Sendable () -> Int64
    ) throws {
        self.catalog = catalog
        self.derived = derived
        self.applied = applied
        self.now = now
        encoding = try TextEncoding(db)
        resolver = IdentityResolver(catalog: catalog, statements: statement, encoding: encoding)
        valueKeys = ValueKeys(catalog)
        nodes = try NodeDirectory(db)
        additions = try ColumnAdditions(db)
        clocks = ClockCoding(nodes: nodes, additions: additions)
        recent = try RecentEntries(db, coding: clocks)
        tombstones = try Tombstones(db, nodes, statement)
        numbers = RowNumbers(statement)
    }

    package func table(_ entity: Entity) -> EntityTable {
        if let table = tables[entity.id] { return table }
        // Older changes come with the entity as it was then.
        let table = EntityTable(entity: catalog[entity.id] ?? entity, context: self)
        tables[entity.id] = table
        return table
    }

    /// Returns the table that a change names. See ``/MartletStore/Catalog/entity(_:_:)``.
    package func table(named name: String, _ formerNames: [String]) -> EntityTable? {
        if let table = tablesByName[name] { return table }
        guard let entity = catalog.entity(name, formerNames) else { return nil }
        let table = table(entity)
        // Names that only another node uses are not cached, since there is no end of them.
        if entity.name == name { tablesByName[name] = table }
        return table
    }

    func noteSchemaChange() { hasChangedSchema = true }
}
