import Synchronization

/// A custom store, and the entities that it contains.
///
/// Contexts know models by number. The unit numbers the identifiers that it encounters, and remembers them as long as
/// its container lives.
final class SnapshotUnit: @unchecked Sendable {  // safe because the store is only called under the lock
    let layout: SchemaLayout
    let identifier: String
    /// The observers of saves by contexts. Other changes to a custom store go unnoticed.
    let changes = StoreChangeHub(path: nil)
    private let store: any SnapshotStoring
    // Recursive, as a store may evaluate predicates that access models of a context.
    private let lock = NSRecursiveLock()
    private let numbers = Mutex(Numbers())

    private struct Numbers {
        var byIdentifier: [PersistentIdentifier: Int64] = [:]
        var all: [PersistentIdentifier] = []
    }

    /// Creates the store that a configuration describes.
    init<C: DataStoreConfiguration>(
        _ configuration: C, _ schema: Schema, _ layout: SchemaLayout, plan: (any SchemaMigrationPlan.Type)?
    ) throws {
        var configuration = configuration
        configuration.schema = schema
        try configuration.validate()
        SnapshotEntities.note(layout)
        self.layout = layout
        let store = try SnapshotEntities.$current.withValue(layout) {
            try C.Store(configuration, migrationPlan: plan)
        }
        self.store = DataStoreBox(store)
        identifier = store.identifier
    }

    func call<R>(_ body: (any SnapshotStoring) throws -> R) rethrows -> R {
        lock.lock()
        defer { lock.unlock() }
        return try SnapshotEntities.$current.withValue(layout) { try body(store) }
    }

    func number(_ identifier: PersistentIdentifier) -> Int64 {
        numbers.withLock { numbers in
            if let known = numbers.byIdentifier[identifier] { return known }
            numbers.all.append(identifier)
            let number = Int64(numbers.all.count)
            numbers.byIdentifier[identifier] = number
            return number
        }
    }

    /// The number for an identifier. Nil for an unknown identifier of another store.
    func row(_ identifier: PersistentIdentifier) -> Int64? {
        if identifier.storeIdentifier == self.identifier { return number(identifier) }
        return numbers.withLock { $0.byIdentifier[identifier] }
    }

    func identifier(_ number: Int64) -> PersistentIdentifier? {
        numbers.withLock { numbers in
            numbers.all.indices.contains(Int(number) - 1) ? numbers.all[Int(number) - 1] : nil
        }
    }
}
