package import Foundation
package import GRDB
package import MartletCore
import MartletStore
package import MartletWire

/// How far a snapshot was loaded: the only code that reads and writes `_martlet_snapshots`.
package struct SnapshotPlace {
    /// The number of the next message.
    package var next = 0
    package var parts = 0
    package var rows = 0
    package var tombstones = 0
    package var digest: [UInt8] = []
    package var isFinished = false

    package static func find(_ db: Database, _ id: Data) throws -> SnapshotPlace? {
        try Row.fetchOne(
            db, sql: "SELECT next, parts, rows, tombstones, digest, finished FROM _martlet_snapshots WHERE id = ?",
            arguments: [id]
        ).map { row in
            SnapshotPlace(
                next: row["next"], parts: row["parts"], rows: row["rows"], tombstones: row["tombstones"],
                digest: row.bytes("digest"), isFinished: row["finished"] != nil)
        }
    }

    package func save(_ db: Database, _ id: Data, now: Int64) throws {
        try db.execute(
            sql: """
                UPDATE _martlet_snapshots SET next = ?2, parts = ?3, rows = ?4, tombstones = ?5,
                digest = ?6, finished = ?7
                WHERE id = ?1
                """,
            arguments: [id, next, parts, rows, tombstones, Data(digest), isFinished ? now : nil])
    }

    /// Begins to load a snapshot, or resumes it. Drops the place of any other snapshot that is not finished.
    ///
    /// - Parameter again: true to begin also if it was loaded before.
    package static func begin(
        _ db: Database, _ header: WireSnapshotHeader, again: Bool, now: Int64
    ) throws -> SnapshotPlace {
        // Another unfinished snapshot is of no use any more.
        try db.execute(
            sql: "DELETE FROM _martlet_snapshots WHERE finished IS NULL AND id <> ?",
            arguments: [header.snapshot])
        if again {
            try db.execute(
                sql: "DELETE FROM _martlet_snapshots WHERE finished IS NOT NULL AND id = ?",
                arguments: [header.snapshot])
        }
        if let place = try find(db, header.snapshot) { return place }
        try db.execute(
            sql: """
                INSERT INTO _martlet_snapshots(id, maker, made, next, parts, rows, tombstones, digest, begun)
                VALUES (?, ?, ?, 0, 0, 0, 0, x'', ?)
                """, arguments: [header.snapshot, header.maker, header.madeMs, now])
        return SnapshotPlace()
    }

    /// Returns the snapshots that were loaded, and the one that was begun and not finished.
    package static func all(_ db: Database) throws -> (finished: Set<NodeID>, begun: NodeID?) {
        var finished: Set<NodeID> = []
        var begun: NodeID?
        for row in try Row.fetchAll(db, sql: "SELECT id, finished FROM _martlet_snapshots") {
            guard let id = NodeID(bytes: row["id"] as Data) else { continue }
            if row["finished"] as Int64? == nil { begun = id } else { finished.insert(id) }
        }
        return (finished, begun)
    }

    /// Returns true while a snapshot is loaded in part.
    package static func isAnyUnfinished(_ db: Database) throws -> Bool {
        try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM _martlet_snapshots WHERE finished IS NULL)") ?? false
    }

    /// Returns true while this node waits for a snapshot: it lacks messages that the topic has dropped, or has loaded a
    /// snapshot in part.
    package static func isAwaited(_ connection: WriterConnection) throws -> Bool {
        try !WantedOffsets.load(connection).isEmpty || connection.read(all).begun != nil
    }
}
