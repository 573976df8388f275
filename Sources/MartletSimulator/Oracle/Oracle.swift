import MartletStore
package import MartletSync

/// Computes from the published transactions what all nodes should contain, by the rules of docs/merging.md.
///
/// Slow and obvious on purpose, and independent of the engine: it keeps each row's registers, accepts transactions in
/// any order, and evaluates the whole only at the end.
package struct Oracle {
    /// A row's last-writer-wins registers.
    struct Row {
        var inserted: Stamp?
        var deleted: Stamp?
        var columns: [String: Register] = [:]

        var isAlive: Bool {
            guard let inserted else { return false }
            guard let deleted else { return true }
            return inserted > deleted
        }

        /// The column's register, if it was set after the newest delete. Otherwise nil.
        func register(_ column: String) -> Register? {
            guard let register = columns[column] else { return nil }
            if let deleted, register.stamp <= deleted { return nil }
            return register
        }
    }

    struct Register {
        var stamp: Stamp
        var value: Value
    }

    struct Name: Hashable {
        var entity: String
        var identity: StableID
    }

    private(set) var rows: [Name: Row] = [:]
    /// The current name of a column, by table and the name in a message.
    private let today: (String, String) -> String

    package init(today: @escaping (String, String) -> String = { $1 }) { self.today = today }

    package mutating func take(_ transaction: PublishedTransaction) {
        for change in transaction.changes {
            let name = Name(entity: change.entity, identity: change.identity)
            var row = rows[name] ?? Row()
            switch change.kind {
            case .insert: row.inserted = max(row.inserted ?? change.stamp, change.stamp)
            case .delete: row.deleted = max(row.deleted ?? change.stamp, change.stamp)
            case .update: break
            }
            for column in change.columns {
                let known = today(change.entity, column.name)
                guard row.columns[known].map({ $0.stamp < change.stamp }) ?? true else { continue }
                row.columns[known] = Register(stamp: change.stamp, value: column.value)
            }
            rows[name] = row
        }
    }

    /// The transactions that nodes apply. Those that were replaced because their times were in the future are not among
    /// them: they wait until the replacement drops them. A replacement that is later than what it replaces repeats it.
    package static func counting(_ transactions: [PublishedTransaction]) -> [PublishedTransaction] {
        var replaced: [NodeID: [Int64: HybridTime]] = [:]
        for transaction in transactions {
            for sequence in transaction.restates {
                replaced[transaction.origin, default: [:]][sequence] = transaction.time
            }
        }
        return transactions.filter { transaction in
            guard let time = replaced[transaction.origin]?[transaction.sequence] else { return true }
            return !transaction.changes.contains { $0.stamp.time > time }
        }
    }

    /// Adds a row that existed before anything was published.
    mutating func begin(_ entity: String, _ identity: StableID, _ values: [String: Value]) {
        var row = Row(inserted: .zero)
        for (column, value) in values { row.columns[column] = Register(stamp: .zero, value: value) }
        rows[Name(entity: entity, identity: identity)] = row
    }
}
