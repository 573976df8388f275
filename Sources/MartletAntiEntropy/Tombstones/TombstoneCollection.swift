import GRDB
import MartletCore
package import MartletEngine
import MartletReplica
import MartletStore
import Synchronization

/// One node's part in collecting tombstones.
package struct TombstoneCollection {
    private let engine: SyncEngine

    package init(_ engine: SyncEngine) {
        self.engine = engine
    }

    private var session: ReplicaSession { engine.session }

    /// Advances this node's clock to half a horizon before the wall clock, so that it doesn't keep other nodes from
    /// collecting tombstones: everything that it writes from now on is stamped later. The distance is large enough that
    /// a wall clock that is ahead for a while does no harm.
    ///
    /// - Parameter horizon: this node's horizon, or the one that it assumes for others.
    func advanceClock(horizon: Duration) throws {
        try session.transaction { db, context in
            context.clock.observe(HybridTime(milliseconds: session.now() - horizon.wholeMilliseconds / 2))
            context.clock.note()
        }
    }

    /// True if rows of a snapshot were left out since the start.
    package var hasLeftOut: Bool { engine.snapshots.rowsLeftOut > 0 }

    func noteMember(_ node: NodeID, _ report: WatermarkReport) throws {
        // A node with a wrong clock can't promise anything.
        let isRight = report.clock.milliseconds - session.now() <= session.maxClockSkew
        try session.transaction { db, context in
            let membership = Membership(db: db, context: context)
            if isRight { try membership.note(report, from: node) }
            try membership.noteDelivered(report, to: node)
        }
    }

    /// Collects the tombstones of rows that were deleted longer ago than the horizon, as far as no participating node
    /// can bring them back.
    ///
    /// Blocks for a while if there are many. Works in batches, between which others can write.
    /// - Parameter isStopped: called between batches; true leaves the rest for the next call.
    /// - Returns: how many were collected.
    @discardableResult
    package func collect(horizon: Duration, isStopped: () -> Bool = { false }) throws -> Int {
        let milliseconds = horizon.wholeMilliseconds
        var count = 0
        var place: TombstoneCollector.Place? = TombstoneCollector.Place()
        try session.transaction { db, context in
            try TombstoneCollector(db: db, context: context).advanceWatermark(horizon: milliseconds)
        }
        while place != nil, !isStopped() {
            count += try session.transaction { db, context in
                try TombstoneCollector(db: db, context: context).collect(&place)
            }
        }
        return count
    }

    /// The watermark up to which this store has collected tombstones, in milliseconds since 1970. Nil if it never did.
    package func collectedThrough() throws -> Int64? {
        try session.read { db in
            try Meta.integer(db, SyncMeta.collected).map {
                HybridTime(stored: $0).milliseconds
            }
        }
    }
}
