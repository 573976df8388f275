package import MartletCore
package import MartletMerge

extension VersionVector {
    package init(_ origins: [WireSnapshotOrigin]) throws(StoreError) {
        self.init()
        for origin in origins {
            guard let node = NodeID(bytes: origin.node) else { throw SnapshotFormat.damaged("a node ID is not a UUID") }
            sets[node] = try SequenceSet(origin)
        }
        guard sets.values.reduce(0, { $0 + $1.gaps.count }) <= InputBounds.maxGaps else {
            throw SnapshotFormat.damaged("it has more gaps than \(InputBounds.maxGaps)")
        }
    }
}
