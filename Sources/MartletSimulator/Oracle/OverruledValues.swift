import MartletStore
import MartletSync

/// The values that were overruled by somebody who had not seen them. Each of them must be in a conflict journal.
///
/// Computed from the published transactions, independently of the engine, like the ``Oracle``.
struct OverruledValues {
    struct Place: Hashable {
        var name: Oracle.Name
        var column: String
        /// The stamp of the write: time and node.
        var stamp: Stamp
    }

    private struct Write {
        var stamp: Stamp
        /// Nil for a delete.
        var value: Value?
        var replaces: HybridTime
    }

    private var columns: [Oracle.Name: [String: [Write]]] = [:]
    private var deletes: [Oracle.Name: [Write]] = [:]
    private let today: (String, String) -> String

    init(today: @escaping (String, String) -> String) { self.today = today }

    mutating func take(_ transaction: PublishedTransaction) {
        for change in transaction.changes {
            let name = Oracle.Name(entity: change.entity, identity: change.identity)
            if change.kind == .delete {
                deletes[name, default: []].append(Write(stamp: change.stamp, value: nil, replaces: change.replaces))
            }
            for column in change.columns {
                columns[name, default: [:]][today(change.entity, column.name), default: []].append(
                    Write(stamp: change.stamp, value: column.value, replaces: column.replaces))
            }
        }
    }

    /// The values that no later writer had seen, or wrote as well.
    var all: [Place: Value] {
        var all: [Place: Value] = [:]
        for (name, row) in columns {
            for (column, writes) in row {
                for write in writes {
                    let later = (writes + (deletes[name] ?? [])).filter { $0.stamp > write.stamp }
                    let isKnown = later.contains {
                        $0.replaces >= write.stamp.time || $0.stamp.node == write.stamp.node || $0.value == write.value
                    }
                    guard !later.isEmpty, !isKnown else { continue }
                    all[Place(name: name, column: column, stamp: write.stamp)] = write.value
                }
            }
        }
        return all
    }
}
