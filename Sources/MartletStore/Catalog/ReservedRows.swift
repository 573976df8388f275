import Foundation
import GRDB

/// Rows that other rows refer to by integer key, but that haven't arrived yet. Each already has its stable ID, with a
/// clock that is older than every change. They are listed, so that they don't count as rows that disappeared unseen.
package enum ReservedRows {
    /// Returns SQL that is true if the entry `s` of the side table belongs to such a row.
    package static func isReserved(_ entity: Entity) -> String {
        "EXISTS (SELECT 1 FROM \(InternalName.reserved) WHERE entity = \(entity.id) AND row = s.row)"
    }

    /// The statement that adds a row: `?1` is the entity, `?2` the integer key.
    package static let add = "INSERT OR IGNORE INTO \(InternalName.reserved)(entity, row) VALUES (?1, ?2)"

    /// The statement that removes a row from the list.
    package static let remove = "DELETE FROM \(InternalName.reserved) WHERE entity = ?1 AND row = ?2"

    /// Lists the rows that a store of an older format has: entries without a row and without changes in the log, whose
    /// ID is not that of a row that existed when its table was attached.
    static func migrate(_ db: Database) throws {
        let namespace = try Meta.text(db, MetaKey.hiddenNamespace).flatMap(UUID.init(uuidString:))
        let stamped = try Meta.integer(db, MetaKey.stamped) ?? 0
        for entity in try Catalog.load(db).entities where entity.identity == .hidden && entity.hasIdentity {
            let side = InternalName.side(entity.id)
            guard let namespace, let key = entity.integerKey?.quotedName, try db.hasTable(side) else { continue }
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT s.row, s.ident FROM \(side) AS s WHERE s.hlc = 0 AND s.ident IS NOT NULL
                    AND NOT EXISTS (SELECT 1 FROM \(entity.name.storeTable) AS t WHERE t.\(key) = s.row)
                    AND s.row NOT IN (SELECT r FROM \(InternalName.log)
                      WHERE e = \(entity.id) AND id > \(stamped) AND r IS NOT NULL)
                    """)
            let names = [entity.name] + entity.formerNames
            for row in rows {
                let ident: Data = row["ident"]
                let number: Int64 = row["row"]
                let wasThere = names.contains {
                    HiddenID.existing(namespace: namespace, entity: $0, row: number).bytes == Array(ident)
                }
                if !wasThere { try db.execute(sql: add, arguments: [entity.id, number]) }
            }
        }
    }
}
