import Foundation
package import GRDB
import MartletStore
import MartletWire

/// The columns that sync format 11 adds to the quarantine.
package enum QuarantineColumns {
    package static func add(_ db: Database) throws {
        let known = Set(try db.columns(in: "_martlet_quarantine").map(\.name))
        let columns = [
            ("kept", "INTEGER NOT NULL DEFAULT 0"), ("bytes", "INTEGER"), ("digest", "BLOB"),
            ("messages", "INTEGER NOT NULL DEFAULT 1"), ("origin", "BLOB"), ("sequence", "INTEGER"),
        ]
        for (name, type) in columns where !known.contains(name) {
            try db.execute(sql: "ALTER TABLE _martlet_quarantine ADD COLUMN \(name) \(type)")
        }
        let rows = try Row.fetchAll(
            db, sql: "SELECT id, partition, headers FROM _martlet_quarantine WHERE partition >= 0")
        for row in rows {
            guard let envelope = try? QuarantinedSource(row).envelope() else { continue }
            try db.execute(
                sql: "UPDATE _martlet_quarantine SET origin = ?, sequence = ? WHERE id = ?",
                arguments: [Data(envelope.origin.bytes), envelope.sequence, row["id"] as Int64])
        }
        try db.execute(
            sql: """
                CREATE INDEX IF NOT EXISTS _martlet_quarantine_sequence
                  ON _martlet_quarantine(sequence, origin) WHERE sequence IS NOT NULL;
                CREATE INDEX IF NOT EXISTS _martlet_quarantine_place ON _martlet_quarantine(partition, offset);
                """)
    }
}
