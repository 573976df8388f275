package import MartletCore

extension RowClocks {
    /// Returns true for a row that doesn't exist, and has no stamp after the watermark.
    package func isCollected(by watermark: HybridTime) -> Bool {
        !isAlive && isBefore(watermark)
    }

    /// Returns true if the row has stamps, and none is after the watermark.
    package func isBefore(_ watermark: HybridTime) -> Bool {
        guard let newest = [newest, deleted].compactMap(\.self).max() else { return false }
        return newest.time <= watermark
    }
}
