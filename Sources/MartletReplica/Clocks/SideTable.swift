package import GRDB
package import MartletCore
package import MartletMerge
package import MartletStore

/// The clocks and stable IDs of an entity's rows, for callers that know that nothing special applies to them.
///
/// Confined to the engine's connection.
package final class SideTable {
    package struct Found {
        /// The row's integer key, if the entity has one.
        package var row: Int64?
        package var clocks: RowClocks
    }

    private let name: String
    private let entity: Int64
    package let isKeyedByInteger: Bool
    private let coding: ClockCoding
    private let recent: RecentEntries
    private var findStatement: PreparedStatement?
    private var insertStatement: PreparedStatement?
    private var updateStatement: PreparedStatement?
    private var removeStatement: PreparedStatement?

    package init(_ entity: Entity, _ coding: ClockCoding, _ recent: RecentEntries) {
        name = InternalName.side(entity.id)
        self.entity = entity.id
        isKeyedByInteger = entity.isKeyedByInteger
        self.coding = coding
        self.recent = recent
    }

    /// Returns the entry of the row with this ID. Not for entities with an integer key and a declared identity: the
    /// side table has no index of their IDs.
    package func find(_ db: Database, _ identity: StableID) throws -> Found? {
        if !isKeyedByInteger, let known = recent.find(entity, identity) {
            return known.clocks.map { Found(row: nil, clocks: $0) }
        }
        let find = try kept(
            &findStatement, db,
            "SELECT hlc, node, attrs\(isKeyedByInteger ? ", row" : "") FROM \(name) WHERE ident = ?1")
        find.bind(1, blob: identity.bytes)
        return try find.first {
            Found(row: isKeyedByInteger ? $0.integer(3) : nil, clocks: coding.decode($0, from: 0, of: entity))
        }
    }

    /// Adds a row whose columns were all set by one insert.
    ///
    /// - Returns: false if a row with this ID or this integer key exists, or if a column has a clock of its own.
    package func insert(_ db: Database, row: Int64?, _ identity: StableID, _ stamp: Stamp, node: Int64) throws -> Bool {
        guard isKeyedByInteger else {
            guard try find(db, identity) == nil else { return false }
            try recent.set(db, entity, identity, RowClocks(inserted: stamp))
            return true
        }
        guard coding.additions.isAfterAll(entity, stamp.time) else { return false }
        let insert = try kept(
            &insertStatement, db, "INSERT OR ABORT INTO \(name)(ident, hlc, node, row) VALUES (?1, ?2, ?3, ?4)")
        insert.bind(1, blob: identity.bytes)
        insert.bind(2, stamp.time.stored)
        insert.bind(3, node)
        insert.bind(4, optional: row)
        return try insert.runUnlessConstrained()
    }

    /// Stores what an update changes: the stamps of single columns.
    package func update(_ db: Database, row: Int64?, _ identity: StableID, _ clocks: RowClocks) throws {
        guard isKeyedByInteger else { return try recent.set(db, entity, identity, clocks) }
        let update = try kept(&updateStatement, db, "UPDATE \(name) SET attrs = ?2 WHERE row = ?1")
        update.bind(1, optional: row)
        if let attributes = try coding.attributes(db, clocks, of: entity) {
            update.bind(2, blob: attributes)
        } else {
            update.bindNull(2)
        }
        try update.run()
    }

    package func remove(_ db: Database, row: Int64?, _ identity: StableID) throws {
        guard isKeyedByInteger else { return try recent.set(db, entity, identity, nil) }
        let remove = try kept(&removeStatement, db, "DELETE FROM \(name) WHERE row = ?1")
        remove.bind(1, optional: row)
        try remove.run()
    }
}
