package import GRDB
package import MartletCore

extension EngineContext {
    /// Advances the watermark, and the clock at least up to it: what this node writes from now on is stamped later than
    /// everything that was collected.
    package func setCollected(_ db: Database, _ cut: HybridTime) throws {
        guard cut > collected else { return }
        collected = cut
        try setMeta(db, SyncMeta.collected, Int64(bitPattern: cut.rawValue))
        clock.observe(cut)
        noteClock()
    }

    /// Returns the highest watermark of this node and all others that it has heard of.
    package func knownCollected(_ db: Database) throws -> HybridTime {
        max(collected, HybridTime(rawValue: UInt64(bitPattern: try meta(db, SyncMeta.knownCollected) ?? 0)))
    }
}
