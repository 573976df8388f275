package import Foundation
package import MartletCore

/// Decides which node exports. Pure: it neither reads the topic nor waits (docs/decisions/0064).
///
/// The order of the topic decides. The record with the highest term holds the lease, and of two with the same term the
/// first; its exporter renews it with further records of the same term. If none comes for the timeout, any other node
/// may claim the next term. All times are intervals by each node's own clock.
package struct ExportLease: Sendable {
    /// The store's node.
    package let node: NodeID
    package let name: String
    package let instance: UUID
    package let timeout: Duration
    /// The record that holds the lease, and when it was read.
    package private(set) var holder: (record: LeaseRecord, read: ContinuousClock.Instant)?
    /// The record that held the lease before this run.
    package private(set) var predecessor: LeaseRecord?
    private var beat: Int64 = 0
    /// When each record of this run was sent that has not been read back.
    private var sent: [Int64: ContinuousClock.Instant] = [:]
    private var lastSent: ContinuousClock.Instant?
    /// When the newest record that was read back had been sent.
    private var confirmed: ContinuousClock.Instant?
    /// Until when the exporter before this run may believe that it holds the lease.
    private var quietUntil: ContinuousClock.Instant?

    package init(node: NodeID, name: String, instance: UUID = UUID(), timeout: Duration) {
        self.node = node
        self.name = name
        self.instance = instance
        self.timeout = timeout
    }

    /// Notes a record of the topic, in the order of the topic.
    package mutating func note(_ record: LeaseRecord, at now: ContinuousClock.Instant) {
        if let current = holder?.record {
            // A new connection reads the newest records again; read again, they are no sign of life.
            guard record.instance != current.instance || record.beat > current.beat else { return }
            // The broker may have compacted the first claim away, and kept the second. Only the first is renewed.
            let isOfHolder = record.instance == current.instance || !record.isClaim
            guard record.term > current.term || record.term == current.term && isOfHolder else { return }
        }
        let before = holder?.record
        holder = (record, now)
        guard record.instance == instance else {
            (confirmed, quietUntil) = (nil, nil)
            return
        }
        if let time = sent.removeValue(forKey: record.beat) { confirmed = max(confirmed ?? time, time) }
        guard before?.instance != instance else { return }
        predecessor = before
        let mayStillExport = before.map { !$0.isReleased && $0.node != node } ?? false
        quietUntil = mayStillExport ? now + timeout : nil
    }

    package var holdsIt: Bool { holder.map { $0.record.instance == instance && !$0.record.isReleased } ?? false }

    /// Returns true if this run may export now.
    package func mayExport(at now: ContinuousClock.Instant) -> Bool {
        guard holdsIt, let confirmed, now < confirmed + timeout * 2 / 3 else { return false }
        return quietUntil.map { now >= $0 } ?? true
    }

    /// Returns true if a renewal is due.
    package func isRenewalDue(at now: ContinuousClock.Instant) -> Bool {
        holdsIt && (lastSent.map { now >= $0 + timeout / 4 } ?? true)
    }

    /// Returns true if this run would claim the lease now, as far as it has read the topic.
    package func mayClaim(at now: ContinuousClock.Instant) -> Bool {
        !holdsIt && isFree(at: now) && (lastSent.map { now >= $0 + timeout / 2 } ?? true)
    }

    /// Returns the record to send now, once the topic was read to its end. Nil if there is nothing to send.
    package mutating func next(at now: ContinuousClock.Instant) -> LeaseRecord? {
        if holdsIt, let held = holder?.record {
            guard isRenewalDue(at: now) else { return nil }
            return record(term: held.term, since: held.since, isClaim: false, at: now)
        }
        guard mayClaim(at: now) else { return nil }
        let term = (holder?.record.term ?? 0) + 1
        let since = holder.flatMap { $0.record.node == node ? $0.record.since : nil } ?? term
        return record(term: term, since: since, isClaim: true, at: now)
    }

    /// Returns the record that gives the lease back. Nil if this run does not hold it.
    package mutating func release(at now: ContinuousClock.Instant) -> LeaseRecord? {
        guard holdsIt, let held = holder?.record else { return nil }
        var last = record(term: held.term, since: held.since, isClaim: false, at: now)
        last.isReleased = true
        return last
    }

    /// A run before this one on the same store has ended: this one has the store's lock.
    private func isFree(at now: ContinuousClock.Instant) -> Bool {
        guard let holder else { return true }
        return holder.record.isReleased || holder.record.node == node || now >= holder.read + timeout
    }

    private mutating func record(
        term: Int64, since: Int64, isClaim: Bool, at now: ContinuousClock.Instant
    ) -> LeaseRecord {
        beat += 1
        sent[beat] = now
        lastSent = now
        return LeaseRecord(
            term: term, since: since, node: node, name: name, instance: instance, beat: beat, isClaim: isClaim)
    }
}
