public import Foundation
import GRDB
import MartletBus
package import MartletCore
public import MartletReplica
public import MartletStore

/// The state of syncing, as the store records it.
public struct SyncStatus: Sendable, Equatable {
    public struct Partition: Sendable, Equatable {
        public var topic: String
        public var partition: Int32
        /// The next offset to read.
        public var next: Int64
        /// The end of the partition, as last seen. Absent before it was first seen.
        public var end: Int64?
        /// The number of waiting messages. Absent while the end is unknown.
        public var lag: Int64? { end.map { max(0, $0 - next) } }
    }

    public struct Origin: Sendable, Equatable {
        public var node: NodeID
        public var name: String?
        /// The highest sequence that was applied.
        public var applied: Int64
        /// When the last transaction arrived.
        public var heard: Date?
        /// Sequences below `applied` that never arrived.
        public var gaps: [ClosedRange<Int64>]

        package init(
            node: NodeID, name: String? = nil, applied: Int64, heard: Date? = nil, gaps: [ClosedRange<Int64>]
        ) {
            self.node = node
            self.name = name
            self.applied = applied
            self.heard = heard
            self.gaps = gaps
        }
    }

    public var node: NodeID?
    public var name: String?
    public var store: UUID
    /// Local transactions that are not in the outbox yet. Changes of other programs that no transaction in the log
    /// closes yet are left out.
    public var unstampedCount: Int
    @available(*, deprecated, renamed: "unstampedCount")
    public var unregisteredCount: Int {
        get { unstampedCount }
        set { unstampedCount = newValue }
    }
    /// The last sequence that was given to a local transaction.
    public var lastSequence: Int64
    public var acknowledged: Int64
    public var confirmed: Int64
    public var partitions: [Partition]
    public var origins: [Origin]
    public var cursors: [HistoryCursor]
    /// Pending rows and changes.
    public var parkedCount: Int
    /// Remote rows and changes that a filter holds back.
    public var filteredCount = 0
    /// What is published and taken.
    public var filters = SyncFilters()
    public var quarantinedCount: Int
    public var conflictCount: Int
    /// How many divergences checks have found between nodes that should have agreed; see `Store.divergences()`.
    public var divergenceCount: Int
    /// Transactions of this node that neither the topic nor a snapshot of this node keeps.
    public var unkept: [UnretainedTransactions] = []
    /// How far this node's clock was ahead of the broker's when one of its own messages last came back, in
    /// milliseconds; negative if it was behind. Absent if the topic has no broker timestamps.
    public var clockOffset: ClosedRange<Int64>?
    /// The watermark up to which tombstones were garbage-collected here. Absent if none ever were.
    public var collectedThrough: Date?
    /// Tables that were tracked and no longer are, with the reason.
    public var lostTables: [String: String]

    package init(
        node: NodeID? = nil, name: String? = nil, store: UUID, unstampedCount: Int, lastSequence: Int64,
        acknowledged: Int64, confirmed: Int64, partitions: [Partition], origins: [Origin], cursors: [HistoryCursor],
        parkedCount: Int, filteredCount: Int = 0, filters: SyncFilters = SyncFilters(), quarantinedCount: Int,
        conflictCount: Int, divergenceCount: Int, unkept: [UnretainedTransactions] = [],
        clockOffset: ClosedRange<Int64>? = nil, collectedThrough: Date? = nil, lostTables: [String: String]
    ) {
        self.node = node
        self.name = name
        self.store = store
        self.unstampedCount = unstampedCount
        self.lastSequence = lastSequence
        self.acknowledged = acknowledged
        self.confirmed = confirmed
        self.partitions = partitions
        self.origins = origins
        self.cursors = cursors
        self.parkedCount = parkedCount
        self.filteredCount = filteredCount
        self.filters = filters
        self.quarantinedCount = quarantinedCount
        self.conflictCount = conflictCount
        self.divergenceCount = divergenceCount
        self.unkept = unkept
        self.clockOffset = clockOffset
        self.collectedThrough = collectedThrough
        self.lostTables = lostTables
    }

    /// The number of transactions that the broker has not acknowledged.
    public var unpublished: Int64 { max(0, lastSequence - acknowledged) + Int64(unstampedCount) }
}

extension SyncStatus {
    /// Reads the status, without writing anything.
    public static func read(_ store: Store) throws -> SyncStatus {
        let cursors = try store.cursors()
        return try store.read { db in
            var status = SyncStatus(
                store: store.identifier,
                unstampedCount: try UnstampedChanges.transactionCount(db),
                lastSequence: 0, acknowledged: 0, confirmed: 0, partitions: [], origins: [], cursors: cursors,
                parkedCount: 0, quarantinedCount: 0, conflictCount: 0, divergenceCount: 0,
                lostTables: try Catalog.lostTables(db))
            guard try Meta.integer(db, SyncMeta.format) != nil else { return status }
            status.node = try Meta.text(db, SyncMeta.node).flatMap(UUID.init(uuidString:)).map { NodeID($0) }
            status.name = try Meta.text(db, SyncMeta.nodeName)
            status.lastSequence = try Outbox.lastSequence(db)
            status.acknowledged = try Meta.integer(db, SyncMeta.acknowledged) ?? 0
            status.confirmed = try OwnCount.confirmed(db)
            status.partitions = try ReadProgress.offsets(db).map { topic, position in
                let end = try Meta.integer(db, SyncMeta.end(topic: topic, partition: position.partition))
                return Partition(topic: topic, partition: position.partition, next: position.offset, end: end)
            }
            status.origins = try origins(db)
            if let low = try Meta.integer(db, SyncMeta.clockOffsetLow),
                let high = try Meta.integer(db, SyncMeta.clockOffsetHigh), low <= high
            {
                status.clockOffset = low...high
            }
            status.collectedThrough = try Meta.integer(db, SyncMeta.collected).map {
                Date(milliseconds: HybridTime(stored: $0).milliseconds)
            }
            status.parkedCount = try ParkedItem.count(db)
            status.filteredCount = try ParkedItem.filteredCount(db)
            status.filters = try SyncFilters.load(db)
            status.quarantinedCount = try DeadLetters.messageCount(db)
            status.conflictCount = try ConflictJournal.count(db)
            status.unkept = try UnretainedRanges.loadUncovered(db)
            status.divergenceCount = try DivergenceLog.count(db)
            return status
        }
    }

    private static func origins(_ db: Database) throws -> [Origin] {
        try ReadProgress.origins(db).map { origin in
            Origin(
                node: origin.node, name: origin.name, applied: origin.applied,
                heard: origin.heard.map { Date(timeIntervalSince1970: Double($0) / 1000) },
                gaps: try SequenceGaps.all(db, node: origin.number))
        }
    }
}
