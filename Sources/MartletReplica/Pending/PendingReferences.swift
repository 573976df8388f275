import Crypto
import Foundation
package import GRDB
package import MartletCore
package import MartletStore

/// References that wait for their target, while their column is NULL: the only code that writes `_martlet_pending`,
/// apart from the migrations to newer formats. ``ParkedItem`` counts them together with rows of other tables.
///
/// Confined to the engine's connection. Recreated after a rollback, together with its context.
package final class PendingReferences {
    private let statement: StatementCache
    /// How many there are. While there are none, nothing need be looked up for them.
    package private(set) var count: Int64

    package init(_ db: Database, _ statement: StatementCache) throws {
        self.statement = statement
        count = try Self.total(db)
    }

    package var isEmpty: Bool { count == 0 }

    /// Adds references of a row, or replaces those of the same columns. Those keep their age.
    package func save(
        _ db: Database, _ entity: Entity, _ identity: StableID,
        _ references: [(slot: Int, value: Value, wait: [UInt8])], now: () -> Int64
    ) throws {
        guard !references.isEmpty else { return }
        let known = Set(try find(db, entity, identity).map(\.0))
        let save = try statement(
            db,
            """
            INSERT INTO _martlet_pending(entity, ident, slot, value, wait, since) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
            ON CONFLICT DO UPDATE SET value = excluded.value, wait = excluded.wait
            """)
        for (slot, value, wait) in references {
            save.bind(1, entity.id)
            save.bind(2, blob: identity.bytes)
            save.bind(3, Int64(slot))
            save.bind(4, blob: StableID(values: [value]).bytes)
            save.bind(5, blob: wait)
            save.bind(6, now())
            try save.run()
            if !known.contains(slot) { count += 1 }
        }
    }

    /// Returns a row's references, with their slots.
    package func find(_ db: Database, _ entity: Entity, _ identity: StableID) throws -> [(Int, Value)] {
        guard !isEmpty else { return [] }
        let find = try statement(
            db, "SELECT slot, value FROM _martlet_pending WHERE entity = ?1 AND ident = ?2")
        find.bind(1, entity.id)
        find.bind(2, blob: identity.bytes)
        var found: [(Int, Value)] = []
        defer { find.reset() }
        while try find.step() {
            found.append((Int(find.integer(0)), try StableID(bytes: find.blob(1)).values().first ?? .null))
        }
        return found
    }

    package func remove(_ db: Database, _ entity: Entity, _ identity: StableID, slot: Int) throws {
        guard !isEmpty else { return }
        let remove = try statement(
            db, "DELETE FROM _martlet_pending WHERE entity = ?1 AND ident = ?2 AND slot = ?3")
        remove.bind(1, entity.id)
        remove.bind(2, blob: identity.bytes)
        remove.bind(3, Int64(slot))
        try remove.run()
        count -= Int64(remove.changes)
    }

    /// Removes all of a row.
    package func remove(_ db: Database, _ entity: Entity, _ identity: StableID) throws {
        guard !isEmpty else { return }
        let remove = try statement(db, "DELETE FROM _martlet_pending WHERE entity = ?1 AND ident = ?2")
        remove.bind(1, entity.id)
        remove.bind(2, blob: identity.bytes)
        try remove.run()
        count -= Int64(remove.changes)
    }

    /// Moves a row's references to its new stable ID.
    package func move(_ db: Database, _ entity: Entity, from old: StableID, to new: StableID) throws {
        let move = try statement(
            db, "UPDATE OR REPLACE _martlet_pending SET ident = ?3 WHERE entity = ?1 AND ident = ?2")
        move.bind(1, entity.id)
        move.bind(2, blob: old.bytes)
        move.bind(3, blob: new.bytes)
        try move.run()
        // The statement may have replaced references of the new ID.
        if move.changes > 0 { count = try Self.total(db) }
    }

    private static func total(_ db: Database) throws -> Int64 {
        try Int64.fetchOne(db, sql: "SELECT count(*) FROM _martlet_pending") ?? 0
    }

    /// Returns the rows with references for which the condition holds.
    package func rows(
        _ db: Database, _ condition: String, _ bind: (PreparedStatement) -> Void
    ) throws -> [RowIdentity] {
        guard !isEmpty else { return [] }
        let find = try statement(
            db, "SELECT DISTINCT entity, ident FROM _martlet_pending WHERE \(condition) ORDER BY entity, ident")
        bind(find)
        return try RowIdentity.all(find)
    }

    /// Returns all references of an entity's rows, with their slots.
    package static func all(_ db: Database, of entity: Entity) throws -> [StableID: [(Int, Value)]] {
        let read = try PreparedStatement(db, "SELECT ident, slot, value FROM _martlet_pending WHERE entity = ?1")
        read.bind(1, entity.id)
        var found: [StableID: [(Int, Value)]] = [:]
        while try read.step() {
            let value = try StableID(bytes: read.blob(2)).values().first ?? .null
            found[StableID(bytes: read.blob(0)), default: []].append((Int(read.integer(1)), value))
        }
        return found
    }

    // MARK: For people

    /// Returns all references, each with the value that it waits to take.
    static func items(_ db: Database, _ catalog: Catalog) throws -> [ParkedItem] {
        try Row.fetchAll(db, sql: "SELECT * FROM _martlet_pending ORDER BY entity, ident, slot").map { row in
            let entity = catalog[row["entity"] as Int64]
            let column = entity?.columns.first { $0.slot == (row["slot"] as Int) }?.name ?? "?"
            let value = try StableID(bytes: row.bytes("value")).values().first ?? .null
            return ParkedItem(
                id: itemID(row), reason: .missingTarget,
                detail: "the column is NULL until its target arrives",
                entity: entity?.name, identity: StableID(bytes: row.bytes("ident")), values: [column: value],
                since: Date(milliseconds: row["since"]))
        }
    }

    /// Deletes the reference with this ``ParkedItem/id``.
    static func discard(_ db: Database, _ id: String) throws {
        for row in try Row.fetchAll(db, sql: "SELECT entity, ident, slot FROM _martlet_pending")
        where itemID(row) == id {
            try db.execute(
                sql: "DELETE FROM _martlet_pending WHERE entity = ? AND ident = ? AND slot = ?",
                arguments: [row["entity"] as Int64, row["ident"] as Data, row["slot"] as Int64])
        }
    }

    /// Returns the ID of a pending reference, made from its column: the table of pending references has no row numbers.
    private static func itemID(_ row: Row) -> String {
        let key = StableID(values: [
            .integer(row["entity"]), .integer(row["slot"]), .blob(row.bytes("ident")),
        ])
        return "p" + Hex.text(SHA256.hash(data: Data(key.bytes)).prefix(6))
    }
}
