package import GRDB
package import MartletCore
package import MartletStore

/// Integer keys that belong to a row which is not in its table: not yet, or no longer.
package struct RowNumbers {
    private let statement: StatementCache

    init(_ statement: StatementCache) {
        self.statement = statement
    }

    /// Remembers that an ID was assigned to a row that has not come yet.
    package func reserve(_ db: Database, _ entity: Entity, row: Int64) throws {
        let save = try statement(db, ReservedRows.add)
        save.bind(1, entity.id)
        save.bind(2, row)
        try save.run()
    }

    /// Returns true for the integer key of a row that has not come yet.
    package func isReserved(_ db: Database, _ entity: Entity, row: Int64) throws -> Bool {
        let find = try statement(
            db, "SELECT 1 FROM \(InternalName.reserved) WHERE entity = ?1 AND row = ?2")
        find.bind(1, entity.id)
        find.bind(2, row)
        return try find.first { _ in true } ?? false
    }

    /// Records that the row has come.
    package func release(_ db: Database, _ entity: Entity, row: Int64) throws {
        let remove = try statement(db, ReservedRows.remove)
        remove.bind(1, entity.id)
        remove.bind(2, row)
        try remove.run()
    }

    /// Keeps a row's stable ID, for the history and for references that are written later.
    package func retire(_ db: Database, _ entity: Entity, row: Int64, until change: Int64, _ identity: StableID) throws
    {
        let save = try statement(
            db, "INSERT OR REPLACE INTO \(InternalName.retired)(entity, row, until, ident) VALUES (?1, ?2, ?3, ?4)")
        save.bind(1, entity.id)
        save.bind(2, row)
        save.bind(3, change)
        save.bind(4, blob: identity.bytes)
        try save.run()
    }
}
