package import GRDB
package import MartletCore
package import MartletStore

/// Integer keys that belong to a row which is not in its table: not yet, or no longer.
///
/// Confined to the engine's connection.
package final class RowNumbers {
    private let statement: StatementCache
    /// No row that is gone had a higher integer key. By entity, once it was asked for.
    private var highestRetired: [Int64: Int64] = [:]
    /// Whether a table with references is missing, once this was asked for.
    private var knownMissing: Bool?

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
        if let highest = highestRetired[entity.id] { highestRetired[entity.id] = max(highest, row) }
    }

    /// Returns true if a row with this ID may not get the integer key because another row had it, and either the table
    /// promises that the number of a deleted row does not come back (`AUTOINCREMENT`), or a table is missing whose rows
    /// may refer to the other row once they are back. Known only as long as the history has the delete. A row
    /// that had the key itself may have it again.
    package func isSpent(_ db: Database, _ entity: Entity, row: Int64, for identity: StableID) throws -> Bool {
        guard try entity.isAutoincrement || isReferrerMissing(db), try row <= highest(db, entity.id) else {
            return false
        }
        let find = try statement(
            db, "SELECT max(ident = ?3) FROM \(InternalName.retired) WHERE entity = ?1 AND row = ?2")
        find.bind(1, entity.id)
        find.bind(2, row)
        find.bind(3, blob: identity.bytes)
        return try find.first { $0.optionalInteger(0) == 0 } ?? false
    }

    private func highest(_ db: Database, _ entity: Int64) throws -> Int64 {
        if let known = highestRetired[entity] { return known }
        let find = try statement(db, "SELECT max(row) FROM \(InternalName.retired) WHERE entity = ?1")
        find.bind(1, entity)
        let highest: Int64 = try find.first { $0.optionalInteger(0) ?? .min } ?? .min
        highestRetired[entity] = highest
        return highest
    }

    private func isReferrerMissing(_ db: Database) throws -> Bool {
        if let known = knownMissing { return known }
        let find = try statement(
            db,
            """
            SELECT 1 FROM \(InternalName.entities) AS e JOIN \(InternalName.columns) AS c ON c.entity = e.id
            WHERE e.state = 'lost' AND c.referred LIMIT 1
            """)
        let isMissing = try find.first { _ in true } ?? false
        knownMissing = isMissing
        return isMissing
    }

    /// Drops what is cached: somebody else may have written.
    func forget() { (highestRetired, knownMissing) = ([:], nil) }
}
