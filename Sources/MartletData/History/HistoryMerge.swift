/// Merges the histories of several stores.
enum HistoryMerge {
    /// Keeps each list in its own order, regardless of clock errors. Time decides which list comes next; on a tie, the
    /// order of the lists does.
    static func merge<T: HistoryTransaction>(_ lists: [[T]], _ order: SortOrder) -> [T] {
        var rest = lists.map { $0[...] }
        var merged: [T] = []
        merged.reserveCapacity(lists.reduce(0) { $0 + $1.count })
        while let next = nextList(rest, order), let transaction = rest[next].popFirst() { merged.append(transaction) }
        return merged
    }

    private static func nextList<T: HistoryTransaction>(_ lists: [ArraySlice<T>], _ order: SortOrder) -> Int? {
        var found: (index: Int, time: Date)?
        for (index, list) in lists.enumerated() {
            guard let time = list.first?.timestamp else { continue }
            guard let known = found else {
                found = (index, time)
                continue
            }
            if order == .forward ? time < known.time : time >= known.time { found = (index, time) }
        }
        return found?.index
    }
}
