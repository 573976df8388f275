/// The local node's transactions that a topic still holds. A pure value.
package struct OwnSequenceScan {
    /// Ascending and disjoint.
    private var seen: [ClosedRange<Int64>] = []
    /// Transactions of which some chunks have not been seen.
    private var partial: [Int64: (chunks: Set<Int>, count: Int)] = [:]

    /// - Parameter ranges: the transactions that a snapshot contains. Ascending and disjoint.
    package init(_ ranges: [ClosedRange<Int64>] = []) {
        seen = ranges
    }

    /// Notes a transaction, or one of its chunks. A chunked transaction counts once all of its chunks were seen.
    package mutating func note(_ sequence: Int64, chunk: (index: Int, count: Int)?) {
        guard let chunk else { return note(sequence) }
        if seen.contains(where: { $0.contains(sequence) }) { return }
        // A different chunk count means another chunk size, so counting starts again.
        if partial[sequence]?.count != chunk.count { partial[sequence] = ([], chunk.count) }
        partial[sequence]?.chunks.insert(chunk.index)
        guard partial[sequence]?.chunks.count == chunk.count else { return }
        partial[sequence] = nil
        note(sequence)
    }

    /// Notes a transaction. Sequences may come in any order and more than once: a lost transaction is republished
    /// behind those that were not lost.
    package mutating func note(_ sequence: Int64) {
        note(sequence...sequence)
    }

    /// Notes a range of transactions.
    package mutating func note(_ sequences: ClosedRange<Int64>) {
        var range = sequences
        let index = seen.firstIndex { $0.upperBound >= range.lowerBound - 1 } ?? seen.endIndex
        while index < seen.endIndex, seen[index].lowerBound <= range.upperBound + 1 {
            range = min(range.lowerBound, seen[index].lowerBound)...max(range.upperBound, seen[index].upperBound)
            seen.remove(at: index)
        }
        seen.insert(range, at: index)
    }

    /// Returns the sequences that are missing, from the first transaction through `last`.
    package func missing(through last: Int64) -> [ClosedRange<Int64>] {
        var missing: [ClosedRange<Int64>] = []
        var next: Int64 = 1
        for range in seen where next <= last {
            if range.lowerBound > next { missing.append(next...min(last, range.lowerBound - 1)) }
            next = range.upperBound + 1
        }
        if next <= last { missing.append(next...last) }
        return missing
    }

    /// The last sequence of the contiguous prefix that starts at the first transaction. Transactions that retention
    /// deleted count as missing too: the log can't distinguish them from lost ones (docs/decisions/0015).
    package var contiguous: Int64 {
        guard let first = seen.first, first.lowerBound == 1 else { return 0 }
        return first.upperBound
    }
}
