public import MartletCore

/// Stamps by column. Most rows have few or none, so they are kept in an array that is sorted by column and searched by
/// bisection.
public struct ColumnStamps: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    public struct Entry: Sendable, Equatable {
        public var column: Int
        public var stamp: Stamp
    }

    /// Sorted by column, ascending.
    public private(set) var entries: [Entry] = []

    public init() {}

    public init(dictionaryLiteral elements: (Int, Stamp)...) {
        for (column, stamp) in elements { self[column] = stamp }
    }

    public var isEmpty: Bool { entries.isEmpty }

    public var newest: Stamp? { entries.lazy.map(\.stamp).max() }

    public subscript(column: Int) -> Stamp? {
        get {
            let place = place(of: column)
            return place < entries.count && entries[place].column == column ? entries[place].stamp : nil
        }
        set {
            let place = place(of: column)
            let isThere = place < entries.count && entries[place].column == column
            switch (newValue, isThere) {
            case (let stamp?, true): entries[place].stamp = stamp
            case (let stamp?, false): entries.insert(Entry(column: column, stamp: stamp), at: place)
            case (nil, true): entries.remove(at: place)
            case (nil, false): break
            }
        }
    }

    public mutating func removeAll(where isRemoved: (Entry) throws -> Bool) rethrows {
        try entries.removeAll(where: isRemoved)
    }

    /// The index of the column's entry, or the index to insert one at.
    private func place(of column: Int) -> Int {
        // Columns are often set in ascending order.
        guard let last = entries.last, last.column >= column else { return entries.count }
        var low = 0
        var high = entries.count - 1
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].column < column { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
