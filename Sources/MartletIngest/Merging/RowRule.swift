import MartletCore
import MartletMerge

/// Which change of a row an event of a source makes, by what this node knows of the row. Pure.
enum RowRule: Equatable {
    /// An insert of the whole row.
    case insert
    /// An update of the columns that the source has changed.
    case update
    /// An update of columns that no device has set since the source did.
    case refresh
    case delete
    /// No change at all.
    case nothing

    /// - Parameters:
    ///   - known: the clocks of the row. Nil if this node knows nothing of it.
    ///   - isLate: whether the record is from before tombstones were collected. It overrules nothing that a device
    ///     wrote.
    init(_ operation: SourceEvent.Operation, _ known: RowClocks?, isLate: Bool) {
        let isKnown = known?.inserted != nil || known?.deleted != nil
        // A compacted topic may lack the insert that came between. A row that a device has deleted stays deleted.
        let wasDeletedBySource = known?.isAlive == false && known?.deleted?.node.isSource ?? false
        switch operation {
        case .delete, .null: self = !isLate || known?.isOfSources ?? false ? .delete : .nothing
        case .create where !isLate: self = .insert
        case .create, .read, .update:
            if !isKnown || wasDeletedBySource {
                self = .insert
            } else {
                self = operation == .update && !isLate ? .update : .refresh
            }
        }
    }
}

extension RowClocks {
    /// Whether the row is there, and no device has set any of it.
    fileprivate var isOfSources: Bool {
        isAlive && inserted?.node.isSource ?? false
            && exceptions.entries.allSatisfy { $0.stamp == .zero || $0.stamp.node.isSource }
    }
}
