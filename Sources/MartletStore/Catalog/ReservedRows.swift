import Foundation
import GRDB

/// Rows that something refers to by their integer key, and that have not come yet: each has its stable ID already,
/// beside a clock that every change is later than. They are listed, so that nobody takes them for rows that went
/// unseen.
package enum ReservedRows {
    /// True of a row's entry among the stable IDs, `s`, where the row is one of these.
    package static func isReserved(_ entity: Entity) -> String {
        "EXISTS (SELECT 1 FROM \(InternalName.reserved) WHERE entity = \(entity.id) AND row = s.row)"
    }

    /// The statement that adds one: `?1` is the entity, `?2` the integer key.
    package static let add = "INSERT OR IGNORE INTO \(InternalName.reserved)(entity, row) VALUES (?1, ?2)"

    /// The statement that takes one off the list.
    package static let remove = "DELETE FROM \(InternalName.reserved) WHERE entity = ?1 AND row = ?2"

    /// Lists those that a store of an older format has: entries without a row, of which the log says nothing, whose ID
    /// is not that of a row which was there when its table was attached.
    static func migrate(_ db: Database) throws {
        let namespace = try Meta.text(db, MetaKey.hiddenNamespace).flatMap(UUID.init(uuidString:))
        let registered = try Meta.integer(db, MetaKey.registered) ?? 0
        for entity in try Catalog.load(db).entities where entity.identity == .hidden && entity.hasIdentity {
            let side = InternalName.side(entity.id)
            guard let namespace, let key = entity.integerKey?.quotedName, try db.hasTable(side) else { continue }
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT s.row, s.ident FROM \(side) AS s WHERE s.hlc = 0 AND s.ident IS NOT NULL
                    AND NOT EXISTS (SELECT 1 FROM \(entity.name.quotedName) AS t WHERE t.\(key) = s.row)
                    AND s.row NOT IN (SELECT r FROM \(InternalName.log)
                      WHERE e = \(entity.id) AND id > \(registered) AND r IS NOT NULL)
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
