package import GRDB
package import MartletCore
package import MartletStore

/// What `martlet verify` examines: whether the side tables fit the tables.
extension SideTable {
    /// Rows of an entity with an integer key that don't fit their entries.
    package struct Mismatches {
        /// Entries without a row.
        package var vanished: Int
        /// Rows without an entry.
        package var appeared: Int
        /// Entries whose stable ID another one has too.
        package var repeated: Int
    }

    /// Compares an entity's table with its side table, without the rows whose changes have no stamps yet.
    ///
    /// - Parameter key: the quoted name of its integer key.
    package static func mismatches(_ db: Database, of entity: Entity, key: String) throws -> Mismatches {
        func count(_ sql: String) throws -> Int { try Int.fetchOne(db, sql: sql) ?? 0 }
        let side = InternalName.side(entity.id)
        let table = entity.name.quotedName
        let stamped = try Meta.integer(db, MetaKey.stamped) ?? 0
        let changed =
            "SELECT r FROM \(InternalName.log) WHERE e = \(entity.id) AND id > \(stamped) AND r IS NOT NULL"
        let vanished = try count(
            """
            SELECT count(*) FROM \(side) AS s WHERE NOT EXISTS (SELECT 1 FROM \(table) AS t WHERE t.\(key) = s.row)
            AND s.row NOT IN (\(changed)) AND NOT \(ReservedRows.isReserved(entity))
            """)
        let appeared = try count(
            """
            SELECT count(*) FROM \(table) AS t WHERE NOT EXISTS (SELECT 1 FROM \(side) AS s WHERE s.row = t.\(key))
            AND t.\(key) NOT IN (\(changed))
            """)
        let repeated = try count("SELECT count(ident) - count(DISTINCT ident) FROM \(side)")
        return Mismatches(vanished: vanished, appeared: appeared, repeated: repeated)
    }

    /// Passes the stable IDs in an entity's side table.
    package static func forEachIdentity(
        _ db: Database, of entity: Entity, _ body: (StableID) throws -> Void
    ) throws {
        let names = try PreparedStatement(db, "SELECT ident FROM \(InternalName.side(entity.id))")
        while try names.step() { try body(StableID(bytes: names.blob(0))) }
    }
}
