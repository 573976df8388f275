import Synchronization

/// What loading snapshots tells the rest of the engine. Counted since the start; from any thread.
package final class SnapshotState: Sendable {
    private let moved = Atomic(0)
    private let leftOut = Atomic(0)
    private let isMissing = Atomic(false)

    init() {}

    /// How often a snapshot has moved offsets. A reader that continues from before must look up its offsets again.
    var movedOffsets: Int { moved.load(ordering: .relaxed) }

    package func noteMovedOffsets() { moved.add(1, ordering: .relaxed) }

    /// How many rows were left out, because this node may have collected their tombstones.
    package var rowsLeftOut: Int { leftOut.load(ordering: .relaxed) }

    package func noteRowLeftOut() { leftOut.add(1, ordering: .relaxed) }

    /// True if this node waits for a snapshot, and there was none to load when the consumer last looked.
    var hasNoneToLoad: Bool { isMissing.load(ordering: .relaxed) }

    /// The consumer has looked for a snapshot to load, or need not look.
    func noteSearch(isMissing value: Bool) { isMissing.store(value, ordering: .relaxed) }
}
