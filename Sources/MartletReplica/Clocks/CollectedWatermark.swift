package import GRDB
package import MartletCore
import MartletStore

/// The watermark up to which this store has collected tombstones. Goes back only if it is in the future.
package final class CollectedWatermark {
    package private(set) var time: HybridTime
    private let meta: MetaValues
    private let clock: NodeClock

    init(_ db: Database, _ meta: MetaValues, _ clock: NodeClock) throws {
        self.meta = meta
        self.clock = clock
        time = HybridTime(stored: try Meta.integer(db, SyncMeta.collected) ?? 0)
    }

    /// Advances the watermark, and the clock at least up to it: what this node writes from now on is stamped later than
    /// everything that was collected.
    package func advance(_ db: Database, to watermark: HybridTime) throws {
        guard watermark > time else { return }
        time = watermark
        try meta.set(db, SyncMeta.collected, watermark.stored)
        clock.observe(watermark)
        clock.note()
    }

    /// Puts the watermarks of this node and of others back to the present if they are in the future: the wall clock was
    /// ahead. Nothing that other nodes have written by now is later, and what they write from now on is.
    ///
    /// - Parameter limit: The first time that counts as the future.
    package func putBack(_ db: Database, to present: HybridTime, from limit: HybridTime) throws {
        if let known = try meta(db, SyncMeta.knownCollected), HybridTime(stored: known) >= limit {
            try meta.set(db, SyncMeta.knownCollected, present.stored)
        }
        guard time >= limit else { return }
        time = present
        try meta.set(db, SyncMeta.collected, present.stored)
        clock.observe(present)
        clock.note()
    }

    /// Returns the highest watermark of this node and all others that it has heard of.
    package func highestKnown(_ db: Database) throws -> HybridTime {
        max(time, HybridTime(stored: try meta(db, SyncMeta.knownCollected) ?? 0))
    }
}
