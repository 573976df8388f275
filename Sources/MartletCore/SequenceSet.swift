/// The transactions of an origin that have been received: all up to `applied`, except those in `gaps`. A pure value.
package struct SequenceSet: Equatable {
    package var applied: Int64
    /// Ascending and disjoint.
    package var gaps: [ClosedRange<Int64>]

    package init(applied: Int64, gaps: [ClosedRange<Int64>]) {
        self.applied = applied
        self.gaps = gaps
    }

    /// Clamps the set to the valid range of sequences. A sequence beyond it was never sent, so it is neither received
    /// nor missing.
    ///
    /// Such sets come from stores and nodes that once trusted a message's claim of how far its origin had got.
    package init(bounding applied: Int64, _ gaps: [ClosedRange<Int64>]) {
        let limit = InputBounds.greatest
        self.applied = min(applied, limit)
        self.gaps = gaps.filter { $0.lowerBound <= limit }.map { $0.clamped(to: 1...limit) }
        guard applied > limit, let last = self.gaps.last, last.upperBound == limit else { return }
        self.gaps.removeLast()
        self.applied = last.lowerBound - 1
    }

    /// The received sequences, as ranges.
    package var ranges: [ClosedRange<Int64>] {
        var ranges: [ClosedRange<Int64>] = []
        var next: Int64 = 1
        for gap in gaps {
            if gap.lowerBound > next { ranges.append(next...(gap.lowerBound - 1)) }
            next = gap.upperBound + 1
        }
        if next <= applied { ranges.append(next...applied) }
        return ranges
    }

    /// The last sequence of the prefix without gaps.
    package var prefix: Int64 { gaps.first.map { min(applied, $0.lowerBound - 1) } ?? applied }

    package func hasAll(through sequence: Int64) -> Bool { prefix >= sequence }

    package func union(_ other: SequenceSet) -> SequenceSet {
        let highest = max(applied, other.applied)
        let (mine, theirs) = (missing(through: highest), other.missing(through: highest))
        var gaps: [ClosedRange<Int64>] = []
        var (a, b) = (0, 0)
        while a < mine.count, b < theirs.count {
            if mine[a].overlaps(theirs[b]) { gaps.append(mine[a].clamped(to: theirs[b])) }
            if mine[a].upperBound < theirs[b].upperBound { a += 1 } else { b += 1 }
        }
        return SequenceSet(applied: highest, gaps: gaps)
    }

    private func missing(through highest: Int64) -> [ClosedRange<Int64>] {
        highest > applied ? gaps + [(applied + 1)...highest] : gaps
    }
}
