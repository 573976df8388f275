public import MartletCore

/// The clocks of one row's registers: its existence, and each of its columns.
///
/// The rules of merging, as a pure value. Merging is commutative, associative and idempotent: every register keeps the
/// greatest stamp it has seen, whatever the order. A column is known by its number; numbers begin at 1.
///
/// - A row is alive when its newest insert is newer than its newest delete.
/// - An insert sets every column that it brings. An update sets columns, and never existence.
/// - What was set before the newest delete counts for nothing, also after the row was inserted again.
public struct RowClocks: Sendable, Equatable {
    /// The newest insert. Absent while only updates of the row are known.
    public private(set) var inserted: Stamp?
    /// The newest delete.
    public private(set) var deleted: Stamp?
    /// Columns whose stamp is not that of the newest insert.
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

    /// When the column was last set. Nil where it never was, or only before the newest delete.
    public func stamp(of column: Int) -> Stamp? {
        let stamp = exceptions[column] ?? inserted
        guard let stamp, let deleted else { return stamp }
        return stamp > deleted ? stamp : nil
    }

    /// The newest stamp of any register of the row, its delete left out.
    public var newest: Stamp? { [inserted, exceptions.newest].compactMap(\.self).max() }

    /// What a change did to the registers.
    public struct Outcome: Sendable, Equatable {
        /// The columns that the change sets.
        public var won: [Int] = []
        /// The columns that something newer had set.
        public var lost: [Int] = []
        public var wasAlive = false
        public var isAlive = false
    }

    /// Merges an insert that brings these columns.
    ///
    /// - Parameter all: the columns that the row has. Those that the insert does not bring keep the stamp that they
    ///   had, or, where they had none, the lowest one.
    public mutating func insert(_ columns: [Int], of all: some Sequence<Int>, at stamp: Stamp) -> Outcome {
        var outcome = Outcome(wasAlive: isAlive)
        guard inserted.map({ stamp > $0 }) ?? true else {
            set(columns, at: stamp, &outcome)
            outcome.isAlive = isAlive
            return outcome
        }
        // A scan of a few numbers is cheaper than a set of them.
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
            // While a newer insert counts, what it did not bring must not pass for its own.
            if inserted.map({ $0 <= stamp }) ?? true { exceptions.removeAll { $0.stamp <= stamp } }
        }
        outcome.isAlive = isAlive
        return outcome
    }
}
