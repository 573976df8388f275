/// The models of a context by row, as long as somebody holds them.
struct ModelRegistry {
    private struct Place: Hashable {
        let table: ObjectIdentifier
        let row: Int64

        init(_ table: TableLayout, _ row: Int64) {
            self.table = ObjectIdentifier(table)
            self.row = row
        }
    }

    private var models: [Place: ModelReference] = [:]
    private var nextCleaning = 10_000

    func model(_ table: TableLayout, _ row: Int64) -> (any PersistentModel)? {
        models[Place(table, row)]?.model
    }

    /// Makes room for models that are about to be added.
    mutating func reserve(_ more: Int) {
        if models.count + more > nextCleaning {
            clean()
            nextCleaning = max(nextCleaning, models.count + more)
        }
        let wanted = models.count + more
        // Doubling, as adding one by one does: many small fetches would copy everything each time.
        if wanted > models.capacity { models.reserveCapacity(max(wanted, 2 * models.count)) }
    }

    mutating func add(_ model: ModelReference, _ table: TableLayout, _ row: Int64) {
        models[Place(table, row)] = model
        if models.count > nextCleaning { clean() }
    }

    /// Throws out the entries of models that nobody holds any more. The next time is when there are many times as many.
    private mutating func clean() {
        for gone in models.filter({ $0.value.model == nil }).keys { models[gone] = nil }
        nextCleaning = max(10_000, 4 * models.count)
    }

    mutating func remove(_ table: TableLayout, _ row: Int64) {
        models[Place(table, row)] = nil
    }

    var all: [any PersistentModel] { models.values.compactMap(\.model) }
}

/// A model that may be gone: held weakly once, by the backing and the register together.
final class ModelReference {
    weak var model: (any PersistentModel)?
}
