import MartletBus
import MartletCore
import MartletReplica
import MartletWire

/// Retries quarantined messages.
struct QuarantineRetry: Sendable {
    let session: ReplicaSession
    let inbound: Inbound
    /// How many messages one commit retries after a key has arrived.
    let batch: Int

    private var messageGuard: MessageGuard { inbound.messageGuard }

    /// See ``SyncEngine/retryQuarantined(_:)``.
    func retry(_ id: Int64?) throws -> QuarantineRetryReport {
        let ids = try session.read { try DeadLetters.ids($0, only: id) }
        if let id, ids.isEmpty { throw QuarantinedMessage.unknown(id) }
        return try retry(ids)
    }

    /// Retries messages that are quarantined for a missing key, if the key ring has changed since the last attempt.
    ///
    /// - Returns: nil if there was nothing to retry.
    func retryMissingKeys() throws -> QuarantineRetryReport? {
        // Counted as tried before looking: a message that is quarantined meanwhile sets it back.
        guard inbound.triedKeys.begin(messageGuard.refresh()) else { return nil }
        do {
            let known = messageGuard.ring.ids
            let ids = try session.read { try DeadLetters.ids($0, lacking: known) }
            guard !ids.isEmpty else { return nil }
            var sum = QuarantineRetryReport()
            // In parts, so that others can write in between.
            for first in stride(from: 0, to: ids.count, by: batch) {
                sum.add(try retry(Array(ids[first..<min(ids.count, first + batch)])))
            }
            return sum
        } catch let error as StoreError where error.isTransient {
            inbound.triedKeys.forget()
            throw error
        }
    }

    private func retry(_ ids: [Int64]) throws -> QuarantineRetryReport {
        guard !ids.isEmpty else { return QuarantineRetryReport() }
        return try session.transaction { db, context in
            let intake = Intake(inbound, db, context, topic: "")
            let letters = DeadLetters(db, context)
            var report = QuarantineRetryReport()
            var applying = ApplyReport()
            for id in ids {
                guard let (source, reason) = try letters.find(id) else { continue }
                let outcome = try retry(source, intake, node: context.node, &applying)
                report.add(outcome)
                switch outcome {
                case .accepted, .waiting, .superseded, .assembled: try letters.remove(id)
                case .notKept: break
                case .notUnderstood(let error):
                    if let missing = error.missingKey { inbound.triedKeys.note(missing) }
                    if error.description != reason { try letters.note(error, for: id) }
                }
            }
            report.parked = applying.deferred
            report.applied -= applying.deferred
            intake.finish()
            return report
        }
    }

    /// The outcome of retrying a quarantined message.
    enum Outcome {
        case accepted
        /// The message is a chunk, and other chunks of its transaction are missing.
        case waiting
        /// Its transaction has arrived meanwhile.
        case superseded
        /// The message was the last chunk of a transaction that is refused. The quarantine has the whole one now.
        case assembled
        /// The store doesn't have the whole message.
        case notKept
        case notUnderstood(WireError)
    }

    private func retry(
        _ source: QuarantinedSource, _ intake: Intake, node: NodeID, _ report: inout ApplyReport
    ) throws -> Outcome {
        do {
            guard source.part == .whole else { return .notKept }
            if source.isPart {
                // The sequence was closed when the transaction arrived and was deferred.
                let transaction = try DecodedTransaction(source.contents)
                if let entity = try transaction.entityWithoutIdentity() { return .notUnderstood(.noIdentity(entity)) }
                try intake.accept(part: transaction, payload: source.contents, &report)
                return .accepted
            }
            let envelope = try source.envelope()
            let message = try source.opened(by: messageGuard, node: node)
            guard envelope.origin != node, try intake.sequences.isNew(envelope) else { return .superseded }
            guard message.isIntact else { return .notUnderstood(.notIntact) }
            let trace = inbound.traceHeaders.trace(of: message)
            // Earlier versions kept the assembled payload under the headers of its last chunk.
            if let chunk = envelope.chunk, source.key != nil {
                switch try intake.take(chunk, of: envelope, message.payload, trace: trace, &report) {
                case .waiting: return .waiting
                case .applied: return .accepted
                case .refused(let error): return .notUnderstood(error)
                case .refusedWhole(let payload, let error):
                    try intake.quarantine.add(message, payload: payload, of: source.topic, error, &report)
                    try intake.forget(envelope)
                    return .assembled
                }
            }
            // What is kept in parts was opened before it was assembled.
            let payload: TransactionPayload =
                if case .stored = source.contents { source.contents } else { .whole(message.payload) }
            let transaction = try DecodedTransaction(
                payload, maxChangeBytes: messageGuard.configuration.maxRowBytes)
            try intake.accept(transaction, envelope, payload: payload, trace: trace, &report)
            return .accepted
        } catch let error as WireError {
            return .notUnderstood(error)
        }
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
