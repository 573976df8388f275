public import MartletCore

/// The stamps of one row's last-writer-wins (LWW) registers: its existence, and each of its columns.
///
/// The merge rules, as a pure value. Merging is commutative, associative and idempotent: every register keeps the
/// greatest stamp that it has seen, in whatever order. Columns are identified by number, starting at 1.
///
/// - A row is alive if its newest insert is newer than its newest delete.
/// - An insert sets every column that it contains. An update sets columns, but never existence.
/// - Values set before the newest delete have no effect, even after the row is inserted again.
public struct RowClocks: Sendable, Equatable {
    /// The newest insert. Nil while only updates of the row are known.
    public private(set) var inserted: Stamp?
    /// The newest delete.
    public private(set) var deleted: Stamp?
    /// Columns whose stamp differs from that of the newest insert.
    public private(set) var exceptions: ColumnStamps

    public init(inserted: Stamp? = nil, deleted: Stamp? = nil, exceptions: ColumnStamps = [:]) {
        self.inserted = inserted
        self.deleted = deleted
        self.exceptions = exceptions
    }

    public var isAlive: Bool {
        guard let inserted else { return false }
        return deleted.map { $0 < inserted } ?? true
    }

    /// Returns the stamp of the column. Returns nil if it was never set, or only before the newest delete.
    public func stamp(of column: Int) -> Stamp? {
        let stamp = exceptions[column] ?? inserted
        guard let stamp, let deleted else { return stamp }
        return stamp > deleted ? stamp : nil
    }

    /// The newest stamp of any register of the row, not counting its delete.
    public var newest: Stamp? { [inserted, exceptions.newest].compactMap(\.self).max() }

    /// The effect of a change on the registers.
    public struct Outcome: Sendable, Equatable {
        /// The columns that the change set.
        public var won: [Int] = []
        /// The columns where a newer stamp, or a newer delete, won.
        public var lost: [Int] = []
        public var wasAlive = false
        public var isAlive = false
    }

    /// Merges an insert that contains these columns.
    ///
    /// - Parameter all: all columns of the row. Columns that the insert does not contain keep their stamps. Those
    ///   without a stamp get the lowest one.
    public mutating func insert(_ columns: [Int], of all: some Sequence<Int>, at stamp: Stamp) -> Outcome {
        var outcome = Outcome(wasAlive: isAlive)
        guard inserted.map({ stamp > $0 }) ?? true else {
            set(columns, at: stamp, &outcome)
            outcome.isAlive = isAlive
            return outcome
        }
        // Scanning a few numbers is cheaper than building a set.
        let brought = columns.count > 16 ? Set(columns) : nil
        for column in all where !(brought?.contains(column) ?? columns.contains(column)) && exceptions[column] == nil {
            exceptions[column] = inserted ?? .zero
        }
        let isDead = deleted.map { stamp <= $0 } ?? false
        for column in columns {
            if !isDead, exceptions[column].map({ stamp > $0 }) ?? true {
                exceptions[column] = nil
                outcome.won.append(column)
            } else {
                outcome.lost.append(column)
            }
        }
        inserted = stamp
        outcome.isAlive = isAlive
        return outcome
    }

    /// Merges an update of these columns.
    public mutating func update(_ columns: [Int], at stamp: Stamp) -> Outcome {
        var outcome = Outcome(wasAlive: isAlive)
        set(columns, at: stamp, &outcome)
        outcome.isAlive = isAlive
        return outcome
    }

    private mutating func set(_ columns: [Int], at stamp: Stamp, _ outcome: inout Outcome) {
        for column in columns {
            let current = exceptions[column] ?? inserted
            if current.map({ stamp > $0 }) ?? true, deleted.map({ stamp > $0 }) ?? true {
                exceptions[column] = stamp
                outcome.won.append(column)
            } else if current != stamp {
                outcome.lost.append(column)
            }
        }
    }

    /// Merges a delete.
    public mutating func delete(at stamp: Stamp) -> Outcome {
        var outcome = Outcome(wasAlive: isAlive)
        if deleted.map({ stamp > $0 }) ?? true {
            deleted = stamp
            // While a newer insert is in effect, the columns that it did not contain must not pass for its own.
            if inserted.map({ $0 <= stamp }) ?? true { exceptions.removeAll { $0.stamp <= stamp } }
        }
        outcome.isAlive = isAlive
        return outcome
    }
}
