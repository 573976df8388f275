import Foundation
import GRDB
import MartletStore
import MartletSync

/// Changes to a node's store behind the back of its engine: what earlier versions, other clocks or faults may leave.
extension TestNode {
    /// Makes the node forget which rows were deleted.
    package func loseTombstones() throws {
        try store.writeOwnTables { try $0.execute(sql: "DELETE FROM _martlet_tombstones") }
    }

    /// Makes the node forget which snapshots it has loaded.
    package func forgetSnapshots() throws {
        try store.writeOwnTables { try $0.execute(sql: "DELETE FROM _martlet_snapshots") }
    }

    /// Moves the read offset of a partition. What is known of the last message that was read stays.
    package func setOffset(_ partition: Int32, to offset: Int64) throws {
        try store.writeOwnTables { db in
            try db.execute(
                sql: "UPDATE _martlet_meta SET value = ? WHERE key GLOB ?",
                arguments: [offset, "offset/\(partition)/*"])
        }
    }

    /// Puts a message that nobody can decode into the quarantine.
    package func quarantineNonsense() throws {
        try foreignWrite(
            """
            INSERT INTO _martlet_quarantine(topic, partition, offset, reason, headers, payload, since)
            VALUES ('t', 0, 77, 'nonsense', '', x'00', 0)
            """)
    }

    /// Changes what the quarantine keeps of messages, which stands for a later version that can decode more.
    ///
    /// - Parameter id: only this message. Nil for all.
    package func changeQuarantined(_ id: Int64? = nil, _ change: ([UInt8]) -> [UInt8]) throws {
        try store.writeOwnTables { db in
            let rows = try Row.fetchAll(
                db, sql: "SELECT id, payload FROM _martlet_quarantine WHERE ?1 IS NULL OR id = ?1", arguments: [id])
            for row in rows {
                try db.execute(
                    sql: "UPDATE _martlet_quarantine SET payload = ? WHERE id = ?",
                    arguments: [Data(change(row.bytes("payload"))), row["id"] as Int64])
            }
            // Of payloads in parts, each part by itself.
            let parts = try Row.fetchAll(
                db,
                sql: """
                    SELECT rowid, bytes FROM _martlet_payload_parts WHERE owner < 0 AND (?1 IS NULL OR owner = -?1)
                    """, arguments: [id])
            for part in parts {
                try db.execute(
                    sql: "UPDATE _martlet_payload_parts SET bytes = ? WHERE rowid = ?",
                    arguments: [Data(change(part.bytes("bytes"))), part["rowid"] as Int64])
            }
        }
    }
}
