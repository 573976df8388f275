package import MartletCore

/// Everything that a node knows of one row: its values in the table, its pending changes and its tombstone, combined.
package struct RowRecord {
    package var identity: StableID
    package var clocks: RowClocks
    /// By column slot. The values have the form that every node understands.
    package var values: [Int: Value]
    /// The row's integer key on this node.
    package var localID: Int64?

    package init(identity: StableID, clocks: RowClocks, values: [Int: Value], localID: Int64? = nil) {
        self.identity = identity
        self.clocks = clocks
        self.values = values
        self.localID = localID
    }

    /// Whether the row exists, and since when.
    package enum Existence: Equatable {
        case alive(Stamp)
        case dead(Stamp)

        package var stamp: Stamp {
            switch self {
            case .alive(let stamp), .dead(let stamp): stamp
            }
        }
    }

    /// Nil if only updates of the row are known, and neither an insert nor a delete.
    package var existence: Existence? {
        if clocks.isAlive { return clocks.inserted.map { .alive($0) } }
        return clocks.deleted.map { .dead($0) }
    }

    /// Returns the stamp and value of a column. Returns nil if it was never set, or only before the newest delete.
    package func register(_ slot: Int) -> (stamp: Stamp, value: Value)? {
        guard let stamp = clocks.stamp(of: slot), let value = values[slot] else { return nil }
        return (stamp, value)
    }

    /// Merges column values that are known from another source, where they are newer.
    package mutating func add(_ other: [Int: Value], at clocks: RowClocks) {
        for (slot, value) in other {
            guard let stamp = clocks.stamp(of: slot), !self.clocks.update([slot], at: stamp).won.isEmpty else {
                continue
            }
            values[slot] = value
        }
    }
}
