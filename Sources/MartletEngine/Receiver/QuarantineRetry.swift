import GRDB
import MartletBus
import MartletCore
import MartletReplica
import MartletStore
import MartletWire
import Synchronization

/// Retries quarantined messages, and knows which of them the key ring was tried on.
package final class QuarantineRetry: Sendable {
    private let session: ReplicaSession
    private let messageGuard: MessageGuard
    /// How many messages one commit retries after a key has arrived.
    private let batch: Int
    /// The last key ring that was tried on everything that is quarantined for a missing key.
    private let triedKeyRing = Atomic(-1)

    init(_ session: ReplicaSession, _ messageGuard: MessageGuard, batch: Int) {
        self.session = session
        self.messageGuard = messageGuard
        self.batch = batch
    }

    /// See ``SyncEngine/retryQuarantined(_:)``.
    func retry(_ id: Int64?, engine: SyncEngine) throws -> QuarantineRetryReport {
        let ids = try session.read { try DeadLetters.ids($0, only: id) }
        if let id, ids.isEmpty { throw QuarantinedMessage.unknown(id) }
        return try retry(ids, engine)
    }

    /// Retries messages that are quarantined for a missing key, if the key ring has changed since the last attempt.
    ///
    /// - Returns: nil if there was nothing to retry.
    func retryMissingKeys(engine: SyncEngine) throws -> QuarantineRetryReport? {
        let generation = messageGuard.refresh()
        guard triedKeyRing.load(ordering: .relaxed) < generation else { return nil }
        // Before looking: a message that is quarantined meanwhile sets it back.
        triedKeyRing.store(generation, ordering: .relaxed)
        let known = messageGuard.ring.ids
        let ids = try session.read { try DeadLetters.ids($0, lacking: known) }
        guard !ids.isEmpty else { return nil }
        var sum = QuarantineRetryReport()
        // In parts, so that others can write in between.
        for first in stride(from: 0, to: ids.count, by: batch) {
            sum.add(try retry(Array(ids[first..<min(ids.count, first + batch)]), engine))
        }
        return sum
    }

    /// Records that a message was quarantined for a key that may have arrived meanwhile.
    func noteMissingKey(_ missing: WireError.MissingKey) {
        if triedKeyRing.load(ordering: .relaxed) > missing.generation {
            triedKeyRing.store(missing.generation, ordering: .relaxed)
        }
    }

    private func retry(_ ids: [Int64], _ engine: SyncEngine) throws -> QuarantineRetryReport {
        guard !ids.isEmpty else { return QuarantineRetryReport() }
        return try session.transaction { db, context in
            let receiver = Receiver(engine: engine, db: db, context: context, topic: "")
            var report = QuarantineRetryReport()
            var applying = ApplyReport()
            for id in ids { try retry(id, receiver, &applying, &report) }
            report.parked = applying.deferred
            report.applied -= applying.deferred
            receiver.finish(&applying)
            return report
        }
    }

    private func retry(
        _ id: Int64, _ receiver: Receiver, _ applying: inout ApplyReport, _ report: inout QuarantineRetryReport
    ) throws {
        let letters = DeadLetters(receiver.db, receiver.context)
        guard let (source, reason) = try letters.find(id) else { return }
        switch try receiver.retry(source, &applying) {
        case .accepted: report.applied += 1
        case .waiting: report.chunks += 1
        case .superseded: report.superseded += 1
        case .assembled: report.kept += 1
        case .notKept:
            report.kept += 1
            report.unkept += 1
            return
        case .notUnderstood(let error):
            report.kept += 1
            if let missing = error.missingKey { noteMissingKey(missing) }
            guard error.description != reason else { return }
            return try letters.note(error, for: id)
        }
        try letters.remove(id)
    }

    // MARK: What was not kept

    /// Returns the partitions that have messages which the quarantine did not keep, and has room for now.
    ///
    /// - Parameter marks: the offsets that the topic still has. Messages that are no longer there are marked so.
    func partitionsWithUnkept(topic: String, _ marks: [Int32: Watermarks]) throws -> Set<Int32> {
        try session.transaction { db, context in
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
    func forgetUnkept(topic: String, in partitions: Set<Int32>) throws {
        try session.transaction { db, context in
            let limit = messageGuard.configuration.maxMessageBytes
            let letters = DeadLetters(db, context)
            for partition in partitions {
                try letters.removePartialEntries(topic: topic, partition: partition, upTo: limit)
            }
        }
    }
}
