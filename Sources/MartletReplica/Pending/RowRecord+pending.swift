package import MartletCore
package import MartletMerge

extension RowRecord {
    package init(_ identity: StableID, _ pendingRow: PendingRow) {
        self.init(identity: identity, clocks: pendingRow.clocks, values: pendingRow.values, localID: pendingRow.localID)
    }
}
