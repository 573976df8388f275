package import GRDB
package import MartletCore
import MartletStore

/// The kind of a conflict.
public enum ConflictKind: String, Sendable, Codable, CaseIterable {
    /// Two nodes set one attribute without knowing of each other. The later value won.
    case attribute
    /// A row was deleted while another node changed it. The delete won.
    case deleted
    /// Two rows claimed one unique key. One is parked.
    case unique
}

/// Records what merging overruled, so that a person can see and re-apply it.
package struct ConflictJournal {
    package let db: Database
    package let context: TableContext

    package static func count(_ db: Database) throws -> Int {
        try Int.fetchOne(db, sql: "SELECT count(*) FROM _martlet_conflicts") ?? 0
    }

    package static func noteReapplied(_ db: Database, _ id: Int64, at now: Int64) throws {
        try db.execute(sql: "UPDATE _martlet_conflicts SET reapplied = ? WHERE id = ?", arguments: [now, id])
    }

    package func record(
        _ kind: ConflictKind, _ table: EntityTable, _ identity: StableID, slot: Int?, value: Value, stamp: Stamp,
        winner: Stamp
    ) throws {
        let insert = try context.statement(
            db,
            """
            INSERT INTO _martlet_conflicts(entity, ident, slot, kind, value, reference, hlc, node,
            winner_hlc, winner_node, since)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
            """)
        insert.bind(1, table.entity.id)
        insert.bind(2, blob: identity.bytes)
        insert.bind(3, optional: slot.map { Int64($0) })
        insert.bind(4, text: kind.rawValue)
        insert.bind(5, kept: value)
        insert.bind(7, stamp.time.stored)
        insert.bind(8, try context.nodes.number(db, stamp.node))
        insert.bind(9, winner.time.stored)
        insert.bind(10, try context.nodes.number(db, winner.node))
        insert.bind(11, context.now())
        try insert.run()
    }
}
