package import MartletCore

/// Which transactions are in what a node has, by origin. Pure.
package struct VersionVector: Equatable {
    package var sets: [NodeID: SequenceSet] = [:]

    package init() {}

    /// True where all transactions of the origin that the other has are here, too.
    package func covers(_ other: VersionVector, of node: NodeID) -> Bool {
        guard let theirs = other.sets[node] else { return true }
        let mine = sets[node] ?? SequenceSet(applied: 0, gaps: [])
        return mine.union(theirs).ranges == mine.ranges
    }

    /// True where all transactions that the other has are here, too.
    package func covers(_ other: VersionVector) -> Bool { other.sets.keys.allSatisfy { covers(other, of: $0) } }

    /// How many transactions of the origin the other has that are not here.
    package func missingCount(_ other: VersionVector, of node: NodeID) -> Int64 {
        let mine = sets[node] ?? SequenceSet(applied: 0, gaps: [])
        let all = other.sets[node].map { mine.union($0) } ?? mine
        func count(_ set: SequenceSet) -> Int64 { set.ranges.reduce(0) { $0 + $1.upperBound - $1.lowerBound + 1 } }
        return count(all) - count(mine)
    }
}
