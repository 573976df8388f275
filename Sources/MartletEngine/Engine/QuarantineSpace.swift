import Foundation
package import GRDB
package import MartletBus
package import MartletReplica
import MartletStore
package import MartletWire

/// Puts messages into the quarantine, as far as there is room (`security.limits.maxQuarantineBytes`).
///
/// Messages for which there is no room are counted: one entry for each partition says how many there were, with a
/// digest over all of them. Their transactions count as missing, like those of all quarantined messages.
package struct QuarantineSpace {
    package let db: Database
    package let context: EngineContext
    package let limits: SecurityConfiguration
    package let topic: String

    /// - Parameters:
    ///   - position: partition -1 if the payload was no message of its own.
    ///   - isWhole: true if the payload was assembled from chunks.
    package func add(
        _ source: QuarantinedSource, _ error: WireError, at position: PartitionPosition, isWhole: Bool, now: Int64
    ) throws {
        var message = KeptMessage(
            reason: error.description, headers: source.headers, key: source.key, payload: source.payload,
            cut: source.cut)
        if source.isUnreadable { message.noteUnreadable() }
        if source.payload.count > (isWhole ? limits.maxTransactionBytes : limits.maxMessageBytes) || source.cut != nil {
            message.keepBeginning(
                """
                raise security.limits.maxMessageBytes, and the agent reads the message again from the topic when it \
                starts; or discard it.
                """
            )
        }
        guard try !isKept(message, at: position) else { return }
        let used = try usedBytes()
        if used + message.storedBytes > limits.maxQuarantineBytes {
            message.keepBeginning(
                """
                the quarantine is full (security.limits.maxQuarantineBytes). Make room, and the agent reads the \
                message again from the topic when it starts; or discard it.
                """
            )
        }
        guard used + message.storedBytes <= limits.maxQuarantineBytes else {
            return try count(message.all, at: position, now: now)
        }
        let proof = error.isUnproven ? QuarantinedSource.Proof.failed : source.proof
        // A part of a deferred transaction leaves no transaction missing.
        let envelope = position.partition < 0 ? nil : try? source.envelope()
        try db.execute(
            sql: """
                INSERT INTO _martlet_quarantine(
                  topic, partition, offset, reason, headers, payload, since, key, appended, proof, missing_key,
                  kept, bytes,
                  digest, origin, sequence)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                topic, position.partition, position.offset, message.reason, message.headers, Data(message.payload), now,
                message.key.map { Data($0) }, source.appended, proof.rawValue, error.missingKey?.id,
                message.part.rawValue, message.byteCount, message.digest.map { Data($0) },
                envelope.map { Data($0.origin.bytes) }, envelope?.sequence,
            ])
        context.positions.quarantinedBytes = used + message.storedBytes
    }

    /// Returns true if the message is in the quarantine already: its partition is being reread.
    private func isKept(_ message: KeptMessage, at position: PartitionPosition) throws -> Bool {
        guard position.partition >= 0 else { return false }
        return try Bool.fetchOne(
            db,
            sql: """
                SELECT EXISTS (SELECT 1 FROM _martlet_quarantine WHERE topic = ? AND partition = ? AND offset = ?
                AND kept = ? AND digest IS ? AND payload = ?)
                """,
            arguments: [
                topic, position.partition, position.offset, message.part.rawValue, message.digest.map { Data($0) },
                Data(message.payload),
            ]) ?? false
    }

    /// Returns the space that the quarantine takes in the store, in bytes.
    package func usedBytes() throws -> Int {
        if let known = context.positions.quarantinedBytes { return known }
        let sum = try Int.fetchOne(
            db,
            sql: """
                SELECT ifnull(sum(length(payload) + length(CAST(headers AS BLOB)) + length(CAST(reason AS BLOB))
                + ifnull(length(key), 0) + \(KeptMessage.overheadBytes)), 0) FROM _martlet_quarantine
                """)
        context.positions.quarantinedBytes = sum ?? 0
        return sum ?? 0
    }

    private func count(_ payload: PayloadCut, at position: PartitionPosition, now: Int64) throws {
        let found = try Row.fetchOne(
            db,
            sql: "SELECT id, digest FROM _martlet_quarantine WHERE topic = ? AND partition = ? AND kept = ?",
            arguments: [topic, position.partition, KeptPart.none.rawValue])
        let digest = Data(
            KeptMessage.digest(of: (found?.bytes("digest") ?? []) + payload.digest))
        if let found {
            return try db.execute(
                sql: """
                    UPDATE _martlet_quarantine SET messages = messages + 1, bytes = bytes + ?, digest = ? WHERE id = ?
                    """,
                arguments: [payload.byteCount, digest, found["id"] as Int64])
        }
        let reason = """
            The quarantine had no room for these messages (security.limits.maxQuarantineBytes). Discard others: once \
            half of it is free, the agent rereads the partition when it starts.
            """
        try db.execute(
            sql: """
                INSERT INTO _martlet_quarantine(
                  topic, partition, offset, reason, headers, payload, since, kept, bytes, digest)
                VALUES (?, ?, ?, ?, '', x'', ?, ?, ?, ?)
                """,
            arguments: [
                topic, position.partition, position.offset, reason, now, KeptPart.none.rawValue, payload.byteCount,
                digest,
            ])
    }
}

extension SyncEngine {
    /// Returns the partitions that have messages which the quarantine did not keep, and has room for now.
    ///
    /// - Parameter marks: the offsets that the topic still has. Messages that are no longer there are marked so.
    package func partitionsWithUnkept(topic: String, _ marks: [Int32: Watermarks]) throws -> Set<Int32> {
        try transaction { db, context in
            let limits = messageGuard.configuration
            let used = try QuarantineSpace(db: db, context: context, limits: limits, topic: topic).usedBytes()
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT id, partition, offset, reason, kept, bytes FROM _martlet_quarantine WHERE topic = ?
                    AND kept IN (1, 2)
                    """,
                arguments: [topic])
            var partitions: Set<Int32> = []
            for row in rows {
                guard let mark = marks[row["partition"]] else { continue }
                let isCounted = row["kept"] as Int64 == KeptPart.none.rawValue
                let offset: Int64 = row["offset"]
                if !isCounted, offset < mark.low {
                    let gone = " The topic does not have it any more."
                    guard !(row["reason"] as String).hasSuffix(gone) else { continue }
                    try db.execute(
                        sql: "UPDATE _martlet_quarantine SET reason = reason || ? WHERE id = ?",
                        arguments: [gone, row["id"] as Int64])
                    continue
                }
                let bytes: Int = row["bytes"] ?? 0
                let hasRoom =
                    isCounted
                    ? used <= limits.maxQuarantineBytes / 2
                    : bytes <= limits.maxMessageBytes && used + bytes <= limits.maxQuarantineBytes
                if hasRoom { partitions.insert(row["partition"]) }
            }
            return partitions
        }
    }

    /// Deletes the entries of messages that were not kept, since they are about to be reread.
    package func forgetUnkept(topic: String, in partitions: Set<Int32>) throws {
        try transaction { db, context in
            let limits = messageGuard.configuration
            for partition in partitions {
                try db.execute(
                    sql: """
                        DELETE FROM _martlet_quarantine WHERE topic = ?1 AND partition = ?2
                        AND (kept = 2 OR kept = 1 AND bytes <= ?3)
                        """, arguments: [topic, partition, limits.maxMessageBytes])
            }
            context.positions.quarantinedBytes = nil
        }
    }
}
