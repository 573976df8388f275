package import GRDB
package import MartletCore
package import MartletMerge
package import MartletStore

/// When deleted rows were deleted: the only code that reads and writes `_martlet_tombstones` and `_martlet_lasting`,
/// apart from the migrations to newer formats.
///
/// Confined to the engine's connection. Recreated after a rollback, together with its context.
package final class Tombstones {
    private let nodes: NodeDirectory
    private let statement: StatementCache
    /// The statements that most commits run, compiled once: looking up a statement by its text takes as long as running
    /// it.
    private var findStatement: PreparedStatement?
    private var saveStatement: PreparedStatement?
    /// While there are none, nothing need be looked up.
    private var hasAny: Bool

    package init(_ db: Database, _ nodes: NodeDirectory, _ statement: StatementCache) throws {
        self.nodes = nodes
        self.statement = statement
        hasAny = try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM \(InternalName.tombstones))") ?? false
    }

    package func find(_ db: Database, _ entity: Int64, _ identity: StableID) throws -> Stamp? {
        guard hasAny else { return nil }
        let find = try kept(
            &findStatement, db, "SELECT hlc, node FROM \(InternalName.tombstones) WHERE entity = ?1 AND ident = ?2")
        find.bind(1, entity)
        find.bind(2, blob: identity.bytes)
        return try find.first { nodes.stamp($0, 0) }
    }

    /// Sets the tombstone if it is newer than the known one.
    package func raise(_ db: Database, _ entity: Int64, _ identity: StableID, _ stamp: Stamp) throws {
        if let known = try find(db, entity, identity), known >= stamp { return }
        try set(db, entity, identity, stamp)
    }

    package func set(_ db: Database, _ entity: Int64, _ identity: StableID, _ stamp: Stamp) throws {
        let save = try kept(
            &saveStatement, db,
            "INSERT OR REPLACE INTO \(InternalName.tombstones)(entity, ident, hlc, node) VALUES (?1, ?2, ?3, ?4)")
        save.bind(1, entity)
        save.bind(2, blob: identity.bytes)
        save.bind(3, stamp.time.stored)
        save.bind(4, try nodes.number(db, stamp.node))
        try save.run()
        hasAny = true
    }

    package func remove(_ db: Database, _ entity: Int64, _ identity: StableID) throws {
        let remove = try statement(db, "DELETE FROM \(InternalName.tombstones) WHERE entity = ?1 AND ident = ?2")
        remove.bind(1, entity)
        remove.bind(2, blob: identity.bytes)
        try remove.run()
    }

    // MARK: Tombstones that are never collected

    /// Exempts the row's tombstone from garbage collection if the row existed before its table was attached: no
    /// transaction inserted it, so a node that was away can't know whether others ever had it.
    package func makeLasting(_ db: Database, _ entity: Int64, _ identity: StableID, of clocks: RowClocks?) throws {
        guard clocks?.inserted ?? .zero == .zero else { return }
        let save = try statement(db, "INSERT OR IGNORE INTO _martlet_lasting(entity, ident) VALUES (?1, ?2)")
        save.bind(1, entity)
        save.bind(2, blob: identity.bytes)
        try save.run()
    }

    package func isLasting(_ db: Database, _ entity: Int64, _ identity: StableID) throws -> Bool {
        let find = try statement(db, "SELECT 1 FROM _martlet_lasting WHERE entity = ?1 AND ident = ?2")
        find.bind(1, entity)
        find.bind(2, blob: identity.bytes)
        return try find.first { _ in true } ?? false
    }

    // MARK: Reading many

    package struct Entry {
        package var entity: Int64
        package var identity: StableID
        package var stamp: Stamp
    }

    /// Passes the tombstones of an entity with a stamp of this time or later, in the order of their IDs.
    package func forEach(
        _ db: Database, of entity: Int64, from time: HybridTime = .zero, _ body: (Entry) throws -> Void
    ) throws {
        let read = try PreparedStatement(
            db,
            """
            SELECT ident, hlc, node FROM \(InternalName.tombstones) WHERE entity = ?1 AND hlc >= ?2 ORDER BY ident
            """)
        read.bind(1, entity)
        read.bind(2, time.stored)
        while try read.step() {
            try body(Entry(entity: entity, identity: StableID(bytes: read.blob(0)), stamp: nodes.stamp(read, 1)))
        }
    }

    /// Passes the next tombstones after a place, of all entities, in the order of entity and ID.
    package func forEach(
        _ db: Database, after entity: Int64, _ identity: [UInt8], limit: Int, _ body: (Entry) throws -> Void
    ) throws {
        let read = try PreparedStatement(
            db,
            """
            SELECT entity, ident, hlc, node FROM \(InternalName.tombstones) WHERE (entity, ident) > (?1, ?2)
            ORDER BY entity, ident LIMIT ?3
            """)
        read.bind(1, entity)
        read.bind(2, blob: identity)
        read.bind(3, Int64(limit))
        while try read.step() {
            try body(
                Entry(entity: read.integer(0), identity: StableID(bytes: read.blob(1)), stamp: nodes.stamp(read, 2)))
        }
    }

    /// Passes the IDs of an entity's rows that a node deleted, in order.
    package func forEach(
        _ db: Database, of entity: Int64, by node: NodeID, _ body: (StableID) throws -> Void
    ) throws {
        let read = try statement(
            db, "SELECT ident FROM \(InternalName.tombstones) WHERE entity = ?1 AND node = ?2 ORDER BY ident")
        read.bind(1, entity)
        read.bind(2, try nodes.number(db, node))
        defer { read.reset() }
        while try read.step() { try body(StableID(bytes: read.blob(0))) }
    }
}
