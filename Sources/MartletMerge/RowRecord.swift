package import MartletCore

/// All that a node knows of one row: what is in the table, what is kept aside of it, and its tombstone, put together.
package struct RowRecord {
    package var identity: StableID
    package var clocks: RowClocks
    /// By the columns' slots, as every node understands them.
    package var values: [Int: Value]
    /// The row's integer key here.
    package var localID: Int64?

    package init(identity: StableID, clocks: RowClocks, values: [Int: Value], localID: Int64? = nil) {
        self.identity = identity
        self.clocks = clocks
        self.values = values
        self.localID = localID
    }

    /// Whether the row is there, and since when.
    package enum Existence: Equatable {
        case alive(Stamp)
        case dead(Stamp)

        package var stamp: Stamp {
            switch self {
            case .alive(let stamp), .dead(let stamp): stamp
            }
        }
    }

    /// Nil where nobody ever said: only updates of the row are known.
    package var existence: Existence? {
        if clocks.isAlive { return clocks.inserted.map { .alive($0) } }
        return clocks.deleted.map { .dead($0) }
    }

    /// When the column was set, and to what. Nil where it never was, or only before the newest delete.
    package func register(_ slot: Int) -> (stamp: Stamp, value: Value)? {
        guard let stamp = clocks.stamp(of: slot), let value = values[slot] else { return nil }
        return (stamp, value)
    }

    /// Takes what is known of the row's columns elsewhere, where it is newer.
    package mutating func add(_ other: [Int: Value], at clocks: RowClocks) {
        for (slot, value) in other {
            guard let stamp = clocks.stamp(of: slot), !self.clocks.update([slot], at: stamp).won.isEmpty else {
                continue
            }
            values[slot] = value
        }
    }
}
