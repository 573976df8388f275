import Foundation
package import GRDB
package import MartletCore
import MartletStore

extension EntityTable {
    /// Returns true if the row's clocks are in this store.
    package func hasTrace(_ db: Database, _ identity: StableID) throws -> Bool {
        guard entity.isKeyedByInteger else { return try side.find(db, identity) != nil }
        return try Bool.fetchOne(
            db, sql: "SELECT EXISTS (SELECT 1 FROM \(InternalName.side(entity.id)) WHERE ident = ?)",
            arguments: [Data(identity.bytes)]) ?? false
    }

    /// Deletes the clocks of a row that disappeared from its table without a trace, so that it can come back under its
    /// integer key.
    ///
    /// - Returns: that key.
    package func forgetLost(_ db: Database, _ identity: StableID) throws -> Int64? {
        guard let key = entity.integerKey?.quotedName else { return nil }
        let side = InternalName.side(entity.id)
        let rows = try Int64.fetchAll(
            db,
            sql: """
                SELECT row FROM \(side) WHERE ident = ? AND NOT EXISTS (
                SELECT 1 FROM \(entity.name.quotedName) AS t WHERE t.\(key) = \(side).row) ORDER BY row
                """, arguments: [Data(identity.bytes)])
        for row in rows { try db.execute(sql: "DELETE FROM \(side) WHERE row = ?", arguments: [row]) }
        return rows.last
    }
}
