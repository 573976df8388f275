package import MartletCore

extension SequenceSet {
    package init(_ origin: WireSnapshotOrigin) throws(StoreError) {
        guard origin.gaps.count <= InputBounds.maxGaps else {
            throw SnapshotFormat.damaged("an origin has \(origin.gaps.count) gaps")
        }
        var gaps: [ClosedRange<Int64>] = []
        var last: UInt64 = 0
        for gap in origin.gaps {
            guard gap.first > last, gap.first <= gap.last, gap.last <= origin.applied else {
                throw SnapshotFormat.damaged("the gaps of an origin are invalid")
            }
            last = gap.last
            gaps.append(Int64(clamping: gap.first)...Int64(clamping: gap.last))
        }
        self.init(bounding: Int64(clamping: origin.applied), gaps)
    }
}
