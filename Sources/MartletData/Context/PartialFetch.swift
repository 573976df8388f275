import GRDB
import MartletStore

/// The columns that a fetch reads.
struct PartialFetch {
    /// Column indices in ascending order. Nil reads all.
    let columns: [Int]?

    /// - Throws: ``SwiftDataError/unsupportedKeyPath``.
    init<T: PersistentModel>(_ descriptor: FetchDescriptor<T>, _ entity: EntityLayout) throws {
        guard !descriptor.propertiesToFetch.isEmpty else {
            columns = nil
            return
        }
        // References are always read: they are small, and relationships are looked up by them.
        var wanted = Set(entity.family.flatMap { $0.slots.compactMap { $0.link == nil ? nil : $0.column } })
        for keyPath in descriptor.propertiesToFetch {
            guard let slot = entity.slot(keyPath) else {
                throw SwiftDataError.unsupportedKeyPath.because(
                    "propertiesToFetch names something that isn't stored in a \(entity.name).")
            }
            if let column = entity.slots[slot].column { wanted.insert(column) }
        }
        columns = wanted.sorted()
    }
}

extension ModelContext {
    /// Reads some slots of a model again. Empty if the row is gone; a value that its attribute's type can't represent
    /// is omitted.
    ///
    /// - Throws: `StoreError` if the store can't be read.
    func read(_ slots: Set<Int>, of backing: ModelBacking) throws -> [Int: Value] {
        guard let layout = backing.layout, let row = backing.row else { return [:] }
        let wanted = layout.columnSlots.filter { slots.contains($0.slot) }
        let names = wanted.map { layout.table.columns[$0.column].name.quotedName }.joined(separator: ", ")
        let text = SQLText(
            "SELECT \(names) FROM \(layout.table.name.quotedName) WHERE \(TableLayout.key) = ?", [.integer(row)])
        guard let unit = container.unit(of: layout).tables else { return [:] }
        let values = try unit.access.readForGetter { db in
            try Self.run(db, unit.statements, text) { statement in
                try statement.first { statement in wanted.indices.map { statement.value(Int32($0)) } }
            }
        }
        guard let values else { return [:] }
        var found: [Int: Value] = [:]
        for (index, (slot, _)) in wanted.enumerated() {
            if case .attribute(_, let type) = layout.slots[slot].kind, !type.accepts(values[index]) { continue }
            found[slot] = values[index]
        }
        return found
    }
}
