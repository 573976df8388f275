/// Which of a node's own transactions a topic still has. Pure.
package struct OwnSequenceScan {
    /// Ascending, and apart from each other.
    private var seen: [ClosedRange<Int64>] = []
    /// Transactions of which not all chunks were seen.
    private var partial: [Int64: (chunks: Set<Int>, count: Int)] = [:]

    package init() {}

    /// - Parameter ranges: what a snapshot has. Ascending, and apart from each other.
    package init(_ ranges: [ClosedRange<Int64>]) {
        seen = ranges
    }

    /// A transaction in chunks counts once all of them are there.
    package mutating func note(_ sequence: Int64, chunk: (index: Int, count: Int)?) {
        guard let chunk else { return note(sequence) }
        if seen.contains(where: { $0.contains(sequence) }) { return }
        // Another size of chunks begins anew.
        if partial[sequence]?.count != chunk.count { partial[sequence] = ([], chunk.count) }
        partial[sequence]?.chunks.insert(chunk.index)
        guard partial[sequence]?.chunks.count == chunk.count else { return }
        partial[sequence] = nil
        note(sequence)
    }

    /// Sequences may come in any order, and again: what was lost is published again behind what was not.
    package mutating func note(_ sequence: Int64) {
        note(sequence...sequence)
    }

    /// Counts all of these as there.
    package mutating func note(_ sequences: ClosedRange<Int64>) {
        var range = sequences
        let index = seen.firstIndex { $0.upperBound >= range.lowerBound - 1 } ?? seen.endIndex
        while index < seen.endIndex, seen[index].lowerBound <= range.upperBound + 1 {
            range = min(range.lowerBound, seen[index].lowerBound)...max(range.upperBound, seen[index].upperBound)
            seen.remove(at: index)
        }
        seen.insert(range, at: index)
    }

    /// What is missing from the very first one up to this sequence.
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

    /// The last sequence up to which nothing is missing, from the very first one on. What retention took counts as
    /// missing too: the log doesn't tell it from what was lost (docs/decisions/0015).
    package var contiguous: Int64 {
        guard let first = seen.first, first.lowerBound == 1 else { return 0 }
        return first.upperBound
    }
}
