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
        let letters = DeadLetters(db, context)
        guard try position.partition < 0 || !letters.contains(message, topic: topic, at: position) else { return }
        let used = try letters.usedBytes()
        if used + message.storedBytes > limits.maxQuarantineBytes {
            message.keepBeginning(
                """
                the quarantine is full (security.limits.maxQuarantineBytes). Make room, and the agent reads the \
                message again from the topic when it starts; or discard it.
                """
            )
        }
        guard used + message.storedBytes <= limits.maxQuarantineBytes else {
            let reason = """
                The quarantine had no room for these messages (security.limits.maxQuarantineBytes). Discard others: \
                once half of it is free, the agent rereads the partition when it starts.
                """
            return try letters.count(message.all, reason: reason, topic: topic, at: position, now: now)
        }
        var source = source
        if error.isUnproven { source.proof = .failed }
        // A part of a deferred transaction leaves no transaction missing.
        let envelope = position.partition < 0 ? nil : try? source.envelope()
        try letters.add(
            message, source, missingKey: error.missingKey?.id, of: envelope, topic: topic, at: position, now: now)
    }
}

extension SyncEngine {
    /// Returns the partitions that have messages which the quarantine did not keep, and has room for now.
    ///
    /// - Parameter marks: the offsets that the topic still has. Messages that are no longer there are marked so.
    package func partitionsWithUnkept(topic: String, _ marks: [Int32: Watermarks]) throws -> Set<Int32> {
        try transaction { db, context in
            let limits = messageGuard.configuration
            let letters = DeadLetters(db, context)
            let used = try letters.usedBytes()
            var partitions: Set<Int32> = []
            for entry in try letters.partialEntries(topic: topic) {
                guard let mark = marks[entry.partition] else { continue }
                if !entry.isCount, entry.offset < mark.low {
                    let gone = " The topic does not have it any more."
                    guard !entry.reason.hasSuffix(gone) else { continue }
                    try letters.extendReason(entry.id, with: gone)
                    continue
                }
                let hasRoom =
                    entry.isCount
                    ? used <= limits.maxQuarantineBytes / 2
                    : entry.byteCount <= limits.maxMessageBytes && used + entry.byteCount <= limits.maxQuarantineBytes
                if hasRoom { partitions.insert(entry.partition) }
            }
            return partitions
        }
    }

    /// Deletes the entries of messages that were not kept, since they are about to be reread.
    package func forgetUnkept(topic: String, in partitions: Set<Int32>) throws {
        try transaction { db, context in
            let limit = messageGuard.configuration.maxMessageBytes
            let letters = DeadLetters(db, context)
            for partition in partitions {
                try letters.removePartialEntries(topic: topic, partition: partition, upTo: limit)
            }
        }
    }
}
