import MartletStore
package import MartletSync

/// What all nodes should hold, worked out from what was published, by the rules of docs/merging.md.
///
/// Slow and obvious on purpose, and written apart from the engine: it knows each row's registers, takes transactions in
/// any order, and looks at the whole only at the end.
package struct Oracle {
    /// A row's registers.
    struct Row {
        var inserted: Stamp?
        var deleted: Stamp?
        var columns: [String: Register] = [:]

        var isAlive: Bool {
            guard let inserted else { return false }
            guard let deleted else { return true }
            return inserted > deleted
        }

        /// What the column was set to since the newest delete. Nil where it was not.
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
    /// The name of a column today, by table and the name that a message has.
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

    /// A row that was there before anything was published.
    mutating func begin(_ entity: String, _ identity: StableID, _ values: [String: Value]) {
        var row = Row(inserted: .zero)
        for (column, value) in values { row.columns[column] = Register(stamp: .zero, value: value) }
        rows[Name(entity: entity, identity: identity)] = row
    }
}
