package import MartletCore

extension RowClocks {
    /// Returns true for a row that doesn't exist, and has no stamp after the cut.
    package func isCollected(by cut: HybridTime) -> Bool {
        !isAlive && isBefore(cut)
    }

    /// Returns true if the row has stamps, and none is after the cut.
    package func isBefore(_ cut: HybridTime) -> Bool {
        guard let newest = [newest, deleted].compactMap(\.self).max() else { return false }
        return newest.time <= cut
    }
}
