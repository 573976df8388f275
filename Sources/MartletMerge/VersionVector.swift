package import MartletCore

/// A version vector: the transactions that a node's data includes, by origin. A pure value.
package struct VersionVector: Equatable {
    package var sets: [NodeID: SequenceSet] = [:]

    package init() {}

    /// Returns whether this vector includes all of the other vector's transactions of an origin.
    package func covers(_ other: VersionVector, of node: NodeID) -> Bool {
        guard let theirs = other.sets[node] else { return true }
        let mine = sets[node] ?? SequenceSet(applied: 0, gaps: [])
        return mine.union(theirs).ranges == mine.ranges
    }

    /// Returns whether this vector includes all of the other vector's transactions.
    package func covers(_ other: VersionVector) -> Bool { other.sets.keys.allSatisfy { covers(other, of: $0) } }

    /// Returns how many of the other vector's transactions of an origin are missing in this one.
    package func missingCount(_ other: VersionVector, of node: NodeID) -> Int64 {
        let mine = sets[node] ?? SequenceSet(applied: 0, gaps: [])
        let all = other.sets[node].map { mine.union($0) } ?? mine
        func count(_ set: SequenceSet) -> Int64 { set.ranges.reduce(0) { $0 + $1.upperBound - $1.lowerBound + 1 } }
        return count(all) - count(mine)
    }
}
