import Foundation
import GRDB
public import MartletCore
import MartletReplica
import MartletStore
import MartletWire

/// The result of giving a store a node ID of its own.
public struct ForkReport: Sendable, Equatable {
    public var former: NodeID
    public var node: NodeID
    /// Transactions that were not seen on the topic, and are republished under the new ID.
    public var republished: Int
    /// Changes that no agent had stamped when the store was copied, or since: they count as this store's own. If the
    /// other store publishes some of them too, rows with IDs that Martlet assigns exist twice.
    public var unstamped: Int64 = 0
    @available(*, deprecated, renamed: "unstamped")
    public var unregistered: Int64 {
        get { unstamped }
        set { unstamped = newValue }
    }
}

/// Gives a store a node ID of its own; see ``SyncEngine/fork(as:)``.
struct StoreFork {
    let session: ReplicaSession

    /// - Parameter fresh: the store's new identifier in tokens and in the IDs that Martlet assigns.
    func run(as identifier: UUID, store fresh: UUID) throws -> ForkReport {
        let former = session.node
        let node = NodeID(identifier)
        // A transaction that is enqueued in part is completed under the same node ID, and with the same kind of row
        // IDs, as that part.
        try session.finishOpenTransaction()
        let unstamped = try session.read(UnstampedChanges.count)
        let republished = try session.writeMeta { db in
            let confirmed = try OwnCount.confirmed(db)
            try keepAhead(db, after: confirmed)
            let moved = try OutboxMove(from: former, to: node, after: confirmed).run(db)
            try followFormer(db, former, applied: confirmed)
            try rename(db, node, fresh.uuidString)
            return moved
        }
        try session.adopt(node)
        return ForkReport(former: former, node: node, republished: republished, unstamped: unstamped)
    }

    /// Keeps transactions of the former ID pending that other nodes keep pending until their time comes. Restamping
    /// gives their changes earlier stamps here, but does not replace them there: an ID can't replace transactions of
    /// another one. So this store has to apply them again when the others do.
    private func keepAhead(_ db: Database, after confirmed: Int64) throws {
        guard confirmed > 0 else { return }
        let unkept = try UnretainedRanges.load(db).map(\.sequences)
        func isOnTopic(_ sequence: Int64) -> Bool {
            sequence <= confirmed && !unkept.contains { $0.contains(sequence) }
        }
        // Restamped before, and the replacement is not on the topic yet.
        try Outbox.forEach(db, in: (confirmed + 1)...Int64.max) { entry in
            guard let newer = try entry.beginning(db) else { return true }
            for sequence in newer.restates.compactMap({ Int64(exactly: $0) }) where isOnTopic(sequence) {
                // A transaction that came too late for others, and was republished, has an older clock.
                guard let payload = try Outbox.payload(db, sequence) else { continue }
                try keep(db, payload, after: HybridTime(rawValue: newer.hlc))
            }
            return true
        }
        // Not restamped yet.
        let limit = HybridTime(milliseconds: session.now() + session.maxClockSkew + 1)
        guard let clock = try Meta.integer(db, SyncMeta.clock), HybridTime(stored: clock) >= limit else { return }
        try Outbox.forEach(db, in: 1...confirmed) { entry in
            if !entry.isReplaced, isOnTopic(entry.sequence) { try keep(db, entry.payload(db), after: limit) }
            return true
        }
    }

    /// Keeps a transaction pending if it is stamped later than this.
    private func keep(_ db: Database, _ payload: [UInt8], after time: HybridTime) throws {
        guard let transaction = try? DecodedTransaction(payload: payload), let latest = transaction.latest,
            latest > time
        else { return }
        try DeferredChanges.add(
            db, .whole(payload), transaction.header, .futureClock, detail: "clock ahead",
            release: latest.milliseconds - session.maxClockSkew, now: session.now())
        session.releases.note()
    }

    /// Turns the former ID into a remote node, of which this store has what it saw on the topic.
    private func followFormer(_ db: Database, _ former: NodeID, applied: Int64) throws {
        let name = try Meta.text(db, SyncMeta.nodeName)
        let number = try NodeDirectory(db).number(db, former, name: name)
        try ReadProgress.raiseApplied(db, of: number, to: applied, heard: nil)
        // A node records only that its own chunks were read back, without their contents. If there are any, all are
        // read again.
        guard try Chunks.count(db, of: former) > 0 else { return }
        try Chunks.delete(db, of: former)
        for partition in try OwnPartitions.load(db) {
            try ReadProgress.deleteOffsets(db, in: partition)
        }
    }

    private func rename(_ db: Database, _ node: NodeID, _ fresh: String) throws {
        try Meta.set(db, MetaKey.storeID, fresh)
        // What is enqueued from now on must not get the row IDs that the other store assigns.
        try Meta.set(db, MetaKey.hiddenNamespace, fresh)
        try Meta.set(db, SyncMeta.node, node.description)
        try Meta.set(db, SyncMeta.acknowledged, 0)
        // These values are about the transactions of the former ID.
        try Members.forgetDelivered(db)
        try OwnCount.forget(db)
        try PublishProgress.placeCursor(db)
    }
}

/// Moves what a store has not seen on the topic to a new node ID, with sequences from 1 on.
private struct OutboxMove {
    let former: NodeID
    let node: NodeID
    let confirmed: Int64

    init(from former: NodeID, to node: NodeID, after confirmed: Int64) {
        self.former = former
        self.node = node
        self.confirmed = confirmed
    }

    /// - Returns: how many transactions were moved.
    func run(_ db: Database) throws -> Int {
        try Outbox.renumber(db, after: confirmed, readdress)
    }

    /// - Parameter numbers: the new sequence of each transaction, by its former one.
    private func readdress(_ payload: [UInt8], _ sequence: Int64, _ numbers: [UInt64: UInt64]) throws -> [UInt8] {
        do {
            var transaction = try WireFormat.decode(payload)
            transaction.clockNode = Data(transaction.clockedBy.bytes)
            transaction.origin = Data(node.bytes)
            transaction.sequence = UInt64(sequence)
            // Those that are on the topic keep the former ID.
            transaction.restates = transaction.restates.compactMap { numbers[$0] }
            return try WireFormat.encode(transaction, as: WireEncoding(of: payload))
        } catch let error as WireError {
            throw StoreError(
                .corrupt, "The outbox has a transaction that can't be read: \(error).",
                hint: "Restore the file from a backup.")
        }
    }
}
