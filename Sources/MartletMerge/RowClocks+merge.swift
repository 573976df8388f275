import MartletCore

extension RowClocks {
    /// Merges everything that another node knows of the row in one step. The result is the same as merging each change
    /// separately.
    ///
    /// - Parameters:
    ///   - columns: the columns whose stamps the other node supplies.
    ///   - all: all columns of the row. Columns that were never set get the lowest stamp.
    public mutating func merge(_ other: RowClocks, bringing columns: [Int], of all: some Sequence<Int>) -> Outcome {
        var outcome = Outcome(wasAlive: isAlive)
        let inserted = [inserted, other.inserted].compactMap(\.self).max()
        let deleted = [deleted, other.deleted].compactMap(\.self).max()
        var exceptions = exceptions
        let brought = Set(columns)
        for column in all {
            let mine = self.exceptions[column] ?? self.inserted
            let theirs = brought.contains(column) ? other.exceptions[column] ?? other.inserted : nil
            if let theirs, theirs != mine {
                let isNewer = mine.map { theirs > $0 } ?? true
                if isNewer, deleted.map({ theirs > $0 }) ?? true {
                    outcome.won.append(column)
                } else {
                    outcome.lost.append(column)
                }
            }
            let newest = [mine, theirs].compactMap(\.self).max() ?? (inserted == nil ? nil : .zero)
            exceptions[column] = newest == inserted ? nil : newest
        }
        self = RowClocks(inserted: inserted, deleted: deleted, exceptions: exceptions)
        outcome.isAlive = isAlive
        // Column stamps from before the delete have no effect on a deleted row.
        if let deleted, !isAlive {
            exceptions.removeAll { $0.stamp <= deleted }
            self = RowClocks(inserted: inserted, deleted: deleted, exceptions: exceptions)
        }
        return outcome
    }
}
