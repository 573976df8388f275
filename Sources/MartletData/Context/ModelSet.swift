/// Models in the order in which they were added, each once.
struct ModelSet {
    private var members: [ObjectIdentifier: (order: Int, model: any PersistentModel)] = [:]
    private var next = 0

    var isEmpty: Bool { members.isEmpty }
    var all: [any PersistentModel] { members.values.sorted { $0.order < $1.order }.map(\.model) }

    func contains(_ model: any PersistentModel) -> Bool { members[ObjectIdentifier(model)] != nil }

    mutating func add(_ model: any PersistentModel) {
        guard !contains(model) else { return }
        members[ObjectIdentifier(model)] = (next, model)
        next += 1
    }

    mutating func remove(_ model: any PersistentModel) { members[ObjectIdentifier(model)] = nil }
    mutating func removeAll() { members.removeAll() }

    mutating func removeAll(where isGoing: (any PersistentModel) -> Bool) {
        members = members.filter { !isGoing($0.value.model) }
    }
}

/// The models of a context by row, as long as somebody holds them.
struct ModelRegistry {
    private struct Entry {
        weak var model: (any PersistentModel)?
    }

    private var tables: [String: [Int64: Entry]] = [:]
    private var addedCount = 0

    func model(_ table: TableLayout, _ row: Int64) -> (any PersistentModel)? { tables[table.name]?[row]?.model }

    mutating func add(_ model: any PersistentModel, _ table: TableLayout, _ row: Int64) {
        tables[table.name, default: [:]][row] = Entry(model: model)
        addedCount += 1
        // Entries of models that nobody holds any more are thrown out now and then.
        if addedCount > 10_000 {
            addedCount = 0
            for name in tables.keys { tables[name] = tables[name]?.filter { $0.value.model != nil } }
        }
    }

    mutating func remove(_ table: TableLayout, _ row: Int64) { tables[table.name]?[row] = nil }

    var all: [any PersistentModel] { tables.values.flatMap { $0.values.compactMap(\.model) } }
}
