package import GRDB
import MartletStore
import MartletWire

/// Repairs stores from before sync format 9, which may have logged the delete of a row that had no ID
/// (docs/decisions/0028).
package enum RowsWithoutIdentity {
    /// Drops what was stored of such rows, and removes them from messages that wait in the outbox.
    ///
    /// - Parameter maxMessageBytes: a message in chunks stays as it is: some of its chunks may be on the topic, and
    ///   match no others.
    package static func drop(_ db: Database, maxMessageBytes: Int) throws {
        // Once more: a store of the newer format may have been migrated before it had the sync tables.
        try db.execute(
            sql: """
                DELETE FROM \(InternalName.tombstones) WHERE length(ident) = 0;
                DELETE FROM \(InternalName.retired) WHERE length(ident) = 0;
                DELETE FROM _martlet_lasting WHERE length(ident) = 0;
                DELETE FROM _martlet_unmentioned WHERE length(ident) = 0;
                DELETE FROM _martlet_pending WHERE length(ident) = 0;
                DELETE FROM _martlet_shadow_columns
                WHERE shadow IN (SELECT id FROM _martlet_shadows WHERE length(ident) = 0);
                DELETE FROM _martlet_shadows WHERE length(ident) = 0;
                """)
        let acknowledged = try Meta.integer(db, SyncMeta.acknowledged) ?? 0
        let read = try PreparedStatement(
            db,
            """
            SELECT sequence, payload FROM _martlet_outbox WHERE sequence > ?1 AND length(payload) <= ?2
            ORDER BY sequence
            """)
        read.bind(1, acknowledged)
        read.bind(2, Int64(maxMessageBytes))
        var repaired: [(sequence: Int64, payload: [UInt8])] = []
        while try read.step() {
            // The publisher reports what can't be read.
            guard let payload = try? WireTransaction.droppingChangesWithoutIdentity(read.blob(1)) else { continue }
            repaired.append((read.integer(0), payload))
        }
        let save = try PreparedStatement(db, "UPDATE _martlet_outbox SET payload = ?2 WHERE sequence = ?1")
        for (sequence, payload) in repaired {
            save.bind(1, sequence)
            save.bind(2, blob: payload)
            try save.run()
        }
    }
}
