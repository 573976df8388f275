package import GRDB
import MartletCore
import MartletStore

/// Repairs stores from before sync format 10, which kept numbers as messages had them, however large.
///
/// No message that was ever sent has a number that no node can reach. A gap at such a number is therefore no gap, and a
/// position there is wrong.
package enum StoredBounds {
    package static func repair(_ db: Database) throws {
        try repairOffsets(db)
        try repairOrigins(db)
        let sequences = InputBounds.sequences
        try db.execute(
            sql: """
                DELETE FROM _martlet_chunks WHERE sequence NOT BETWEEN ?1 AND ?2 OR chunk < 0 OR chunk >= count
                OR count > ?3
                """, arguments: [sequences.lowerBound, sequences.upperBound, InputBounds.maxChunks])
        try db.execute(
            sql: "DELETE FROM _martlet_members WHERE hlc < 0 OR sequence NOT BETWEEN 0 AND ?",
            arguments: [InputBounds.greatest])
        // Clock readings that no clock can reach.
        for key in [SyncMeta.clock, SyncMeta.collected, SyncMeta.knownCollected]
        where try Meta.integer(db, key) ?? 0 < 0 {
            try Meta.set(db, key, nil as Int64?)
        }
    }

    private static func repairOffsets(_ db: Database) throws {
        let times = InputBounds.milliseconds
        // Reread from the beginning: messages that arrive again are recognized by origin and sequence.
        try ReadProgress.deleteOffsets(db, where: "next NOT BETWEEN 0 AND \(InputBounds.greatest)")
        // The message counts as one with invalid headers, as it does when it is read again.
        try db.execute(
            sql: """
                UPDATE \(InternalName.meta) SET origin = NULL, sequence = NULL
                WHERE key GLOB 'offset/*' AND sequence > \(InputBounds.greatest);
                UPDATE \(InternalName.meta) SET at = min(max(at, -1), \(times.upperBound))
                WHERE key GLOB 'offset/*' AND at IS NOT NULL;
                """)
    }

    private static func repairOrigins(_ db: Database) throws {
        let origins = try Row.fetchAll(
            db, sql: "SELECT node, applied FROM _martlet_origins WHERE applied NOT BETWEEN 0 AND ?",
            arguments: [InputBounds.greatest])
        for origin in origins {
            let node: Int64 = origin["node"]
            let gaps = try SequenceGaps.all(db, node: node)
            let repaired = SequenceSet(bounding: max(0, origin["applied"]), gaps)
            try db.execute(
                sql: "UPDATE \(InternalName.meta) SET value = ? WHERE key = ?",
                arguments: [repaired.applied, ReadProgress.originKey(node)])
            try SequenceGaps.replace(db, node: node, repaired.gaps)
        }
    }
}
