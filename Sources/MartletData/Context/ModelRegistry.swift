/// The models of a context by row, held weakly.
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
    private var crowd = 10_000
    /// True once at least 10,000 models are alive, and four times as many as after the last unloading.
    private(set) var isCrowded = false

    func model(_ table: TableLayout, _ row: Int64) -> (any PersistentModel)? {
        models[Place(table, row)]?.model
    }

    /// Reserves capacity for models that are about to be added.
    mutating func reserve(_ more: Int) {
        if models.count + more > nextCleaning {
            clean()
            nextCleaning = max(nextCleaning, models.count + more)
        }
        let wanted = models.count + more
        // Doubles, as adding one by one does: otherwise many small fetches would copy everything each time.
        if wanted > models.capacity { models.reserveCapacity(max(wanted, 2 * models.count)) }
    }

    mutating func add(_ model: ModelReference, _ table: TableLayout, _ row: Int64) {
        models[Place(table, row)] = model
        if models.count > nextCleaning { clean() }
    }

    /// Removes the entries of released models. The next time is when there are four times as many entries, 10,000 at
    /// least.
    private mutating func clean() {
        for gone in models.filter({ $0.value.model == nil }).keys { models[gone] = nil }
        nextCleaning = max(10_000, 4 * models.count)
        isCrowded = models.count >= crowd
    }

    /// Must be called before the relationships of all models are unloaded.
    mutating func startUnloading() { isCrowded = false }

    /// Must be called after the relationships of all models were unloaded.
    mutating func cleanUnloaded() {
        clean()
        crowd = nextCleaning
        isCrowded = false
    }

    mutating func remove(_ table: TableLayout, _ row: Int64) {
        models[Place(table, row)] = nil
    }

    var all: [any PersistentModel] { models.values.compactMap(\.model) }
}

/// A weak reference to the model of a row, shared by the backing and the registry.
///
/// A row has several objects once a new one was saved as the row of one that the context had. The first that still
/// lives stands for the row.
final class ModelReference {
    private weak var first: (any PersistentModel)?
    private var others: [ModelReference] = []

    var model: (any PersistentModel)? {
        get {
            if let first { return first }
            for other in others { if let model = other.model { return model } }
            return nil
        }
        set { first = newValue }
    }

    func add(_ other: ModelReference) {
        others.removeAll { $0.model == nil }
        others.append(other)
    }
}
