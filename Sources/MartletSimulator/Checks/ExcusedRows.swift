import MartletStore
import MartletSync

/// Rows that are pending on all nodes but the one where they were written, and rows that are pending because of them:
/// SQLite accepted them, although they refer to no row.
struct ExcusedRows {
    private var rows: [ParkedItem] = []
    private let entities: [String: Entity]

    /// - Parameters:
    ///   - items: the pending changes of any node.
    ///   - awaited: references to rows that never existed.
    init(_ items: [ParkedItem], _ entities: [Entity], awaiting awaited: Set<Value>) {
        self.entities = Dictionary(entities.map { ($0.name, $0) }, uniquingKeysWith: { a, _ in a })
        rows = items.filter { item in
            item.values.values.contains(where: awaited.contains) || hasUncheckedReference(item)
        }
        // A row that refers to one of them is pending too.
        while true {
            let more = items.filter { item in !contains(item) && refersToOne(item) }
            if more.isEmpty { break }
            rows += more
        }
    }

    func contains(_ item: ParkedItem) -> Bool {
        rows.contains { $0.entity == item.entity && $0.identity == item.identity }
    }

    /// Returns true for a whole row with a foreign key of several columns of which one is NULL, and another one refers
    /// to a row: SQLite doesn't check such a key.
    private func hasUncheckedReference(_ item: ParkedItem) -> Bool {
        guard item.reason == .missingTarget, !item.id.hasPrefix("p"), let entity = item.entity.flatMap({ entities[$0] })
        else { return false }
        return entity.foreignKeys.contains { key in
            let values = key.columns.map { item.values[$0] ?? .null }
            return values.contains(.null) && values.contains { if case .reference = $0 { true } else { false } }
        }
    }

    private func refersToOne(_ item: ParkedItem) -> Bool {
        guard item.reason == .missingTarget, let entity = item.entity.flatMap({ entities[$0] }) else { return false }
        return rows.contains { row in
            guard let target = row.entity.flatMap({ entities[$0] }), let identity = row.identity else { return false }
            let reference = Value.reference(Reference(entity: target.name, identity: identity))
            if item.values.values.contains(reference) { return true }
            return entity.foreignKeys.contains { key in
                guard key.target.lowercased() == target.name.lowercased() else { return false }
                let pairs = zip(key.columns, key.targetColumns).compactMap { column, name in
                    item.values[column].map { ($0, row.values[name]) }
                }
                return !pairs.isEmpty && pairs.allSatisfy { $0 == $1 }
            }
        }
    }
}
