/// The models of a context by row, as long as somebody holds them.
struct ModelRegistry {
    private struct Entry {
        weak var model: (any PersistentModel)?
    }

    private var tables: [ObjectIdentifier: [Int64: Entry]] = [:]
    private var count = 0
    private var nextCleaning = 10_000

    func model(_ table: TableLayout, _ row: Int64) -> (any PersistentModel)? {
        tables[ObjectIdentifier(table)]?[row]?.model
    }

    /// Makes room for models that are about to be added.
    mutating func reserve(_ table: TableLayout, _ more: Int) {
        let key = ObjectIdentifier(table)
        let wanted = (tables[key]?.count ?? 0) + more
        // Doubling, as adding one by one does: many small fetches would copy everything each time.
        guard wanted > tables[key]?.capacity ?? 0 else { return }
        tables[key, default: [:]].reserveCapacity(max(wanted, 2 * (tables[key]?.count ?? 0)))
    }

    mutating func add(_ model: any PersistentModel, _ table: TableLayout, _ row: Int64) {
        if tables[ObjectIdentifier(table), default: [:]].updateValue(Entry(model: model), forKey: row) == nil {
            count += 1
        }
        if count > nextCleaning { clean() }
    }

    /// Throws out the entries of models that nobody holds any more. The next time is when there are many times as many.
    private mutating func clean() {
        for table in tables.keys {
            let gone = tables[table]?.compactMap { $0.value.model == nil ? $0.key : nil } ?? []
            for row in gone { tables[table]?[row] = nil }
            count -= gone.count
        }
        nextCleaning = max(10_000, 4 * count)
    }

    mutating func remove(_ table: TableLayout, _ row: Int64) {
        if tables[ObjectIdentifier(table)]?.removeValue(forKey: row) != nil { count -= 1 }
    }

    var all: [any PersistentModel] { tables.values.flatMap { $0.values.compactMap(\.model) } }
}
