import Foundation
import GRDB
import MartletCore
import MartletReplica
import MartletStore
import MartletWire
import Synchronization

/// The result of retrying what is parked.
public struct ParkedRetryReport: Sendable, Equatable {
    /// How many items waited before.
    public var before = 0
    /// How many still wait. A transaction with parts that can't be applied leaves one item for each such part.
    public var after = 0

    public init() {}
}

extension SyncEngine {
    /// Decodes quarantined messages again, and applies those that this program now understands, in one SQLite
    /// transaction.
    ///
    /// A message whose headers can't be understood stays until they can. Messages that stay keep their number and age.
    /// - Parameter id: the message to retry. Nil: all.
    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` if no message has this number, any other code
    ///   if the store can't be written; then all messages stay as they were.
    @discardableResult
    public func retryQuarantined(_ id: Int64? = nil) throws -> QuarantineRetryReport {
        let ids = try read { try DeadLetters.ids($0, only: id) }
        if let id, ids.isEmpty { throw QuarantinedMessage.unknown(id) }
        return try retryQuarantined(ids)
    }

    /// Retries messages that are quarantined for a missing key, if the key ring has changed since the last attempt.
    ///
    /// - Returns: nil if there was nothing to retry.
    func retryMissingKeys() throws -> QuarantineRetryReport? {
        let generation = messageGuard.refresh()
        guard triedKeyRing.load(ordering: .relaxed) < generation else { return nil }
        // Before looking: a message that is quarantined meanwhile sets it back.
        triedKeyRing.store(generation, ordering: .relaxed)
        let known = messageGuard.ring.ids
        let ids = try read { try DeadLetters.ids($0, lacking: known) }
        guard !ids.isEmpty else { return nil }
        var sum = QuarantineRetryReport()
        // In parts, so that others can write in between.
        for first in stride(from: 0, to: ids.count, by: configuration.applyBatchTransactions) {
            let part = ids[first..<min(ids.count, first + configuration.applyBatchTransactions)]
            sum.add(try retryQuarantined(Array(part)))
        }
        return sum
    }

    /// Records that a message was quarantined for a key that may have arrived meanwhile.
    func noteMissingKey(_ missing: WireError.MissingKey) {
        if triedKeyRing.load(ordering: .relaxed) > missing.generation {
            triedKeyRing.store(missing.generation, ordering: .relaxed)
        }
    }

    private func retryQuarantined(_ ids: [Int64]) throws -> QuarantineRetryReport {
        guard !ids.isEmpty else { return QuarantineRetryReport() }
        return try transaction { db, context in
            let receiver = Receiver(engine: self, db: db, context: context, topic: "")
            var report = QuarantineRetryReport()
            var applying = ApplyReport()
            for id in ids { try retryQuarantined(id, receiver, &applying, &report) }
            report.parked = applying.deferred
            report.applied -= applying.deferred
            receiver.finish(&applying)
            return report
        }
    }

    private func retryQuarantined(
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

    /// Retries everything that is parked now, in one SQLite transaction. Transactions with a clock ahead keep waiting
    /// unless they are due.
    ///
    /// Engines retry by themselves: each item when what it waits for arrives.
    /// - Throws: ``/MartletCore/StoreError`` if the store can't be written; then everything stays as it was.
    @discardableResult
    public func retryParked() throws -> ParkedRetryReport {
        var report = ParkedRetryReport()
        report.before = try read(ParkedItem.count)
        report.after = try transaction { db, context in
            _ = try retryDeferred(db, context, .all(at: now()))
            let applier = Applier(db, context)
            try applier.retryAll()
            try closeTransaction(db, context, mark: TransactionMark(author: TransactionAuthor.sync, context: "retry"))
            return try ParkedItem.count(db)
        }
        return report
    }
}
