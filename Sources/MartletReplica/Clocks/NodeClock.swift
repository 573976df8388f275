import GRDB
package import MartletCore
import MartletStore

/// This node's hybrid logical clock. It is stored when a transaction of the engine ends.
///
/// Confined to the engine's connection. Recreated after a rollback, together with its context.
package final class NodeClock {
    private var clock: HybridClock
    private let now: @Sendable () -> Int64
    private let maxSkew: Int64
    private let notes: CommitNotes

    /// - Parameters:
    ///   - now: the wall clock, in milliseconds since 1970.
    ///   - maxSkew: how far ahead of the wall clock a stamp may be, in milliseconds.
    init(last: HybridTime, now: @escaping @Sendable () -> Int64, maxSkew: Int64, _ notes: CommitNotes) {
        clock = HybridClock(last: last)
        self.now = now
        self.maxSkew = maxSkew
        self.notes = notes
    }

    package var last: HybridTime { clock.last }

    /// Takes over a reading of another node: everything that this node writes from now on is stamped later.
    package func observe(_ time: HybridTime) { clock.observe(time) }

    /// Returns the reading for a change that the engine makes now.
    package func tick() -> HybridTime { clock.tick(at: now()) }

    /// Returns the reading for a local change that a program made at this time. If the program's clock was ahead, that
    /// must not put all later changes into the future: other nodes would keep them waiting.
    func tick(at milliseconds: Int64) -> HybridTime { clock.tick(at: min(milliseconds, now() + maxSkew)) }

    /// Puts the clock to this reading. It may go back only if nothing keeps a later stamp.
    package func set(_ last: HybridTime) { clock = HybridClock(last: last) }

    /// Stores the clock when the transaction ends.
    package func note() { notes.add(SyncMeta.clock, clock.last.stored) }
}
