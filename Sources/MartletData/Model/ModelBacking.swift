import MartletStore

/// Where a model's values are: what `@Model`'s accessors read and write.
///
/// Used where its model's context is used, and nowhere else.
public final class ModelBacking {
    enum State {
        /// In no context.
        case detached
        /// In a context, not in the store.
        case inserted
        /// In the store.
        case stored
        /// In the store until the next save.
        case deleted
        /// Deleted for good.
        case gone
    }

    /// What a relationship leads to, once it was set or looked at.
    enum Related {
        case one((any PersistentModel)?)
        case many([any PersistentModel])

        var models: [any PersistentModel] {
            switch self {
            case .one(let model): model.map { [$0] } ?? []
            case .many(let models): models
            }
        }
    }

    /// The stored form of each slot that has a column.
    var values: [Value] = []
    /// The slots that a fetch left out, until they are looked at.
    var unread: Set<Int> = []
    var related: [Int: Related] = [:]
    /// What to-many relationships of a store of one's own led to when they were read or saved.
    var lists: [Int: [Int64]] = [:]
    /// The slots that were set since the last save, with what was there before.
    var originals: [Int: Value] = [:]
    /// The many-to-many relationships that were changed since the last save, with what was there before.
    var originalLinks: [Int: [any PersistentModel]] = [:]
    /// Values that can't be encoded, until they are replaced.
    var unencodable: [Int: (value: Any, error: any Error)] = [:]
    var state = State.detached
    var row: Int64?
    private var temporary: PersistentIdentifier?
    var home: ModelHome?
    var context: ModelContext? { home?.context }
    /// The model whose values these are.
    let reference = ModelReference()
    var owner: (any PersistentModel)? {
        get { reference.model }
        set { reference.model = newValue }
    }
    var layout: EntityLayout?
    private var registrar: ObservationRegistrar?

    public init() {}

    /// For what `@Model` writes: who observes the properties. Made when one of them is looked at or set for the first
    /// time: of a long list that is fetched, most models never are.
    public var observationRegistrar: ObservationRegistrar {
        if let registrar { return registrar }
        let made = ObservationRegistrar()
        registrar = made
        return made
    }

    /// False where nobody can observe anything.
    var hasRegistrar: Bool { registrar != nil }

    init(layout: EntityLayout, row: Int64, values: [Value], context: ModelContext) {
        self.layout = layout
        self.row = row
        self.values = values
        home = context.home
        state = .stored
        isFetched = true
    }

    /// True for a model that is made of a row: what its initializer assigns are default values.
    private(set) var isFetched = false

    var hasChanges: Bool { !originals.isEmpty || !originalLinks.isEmpty || state == .inserted || state == .deleted }

    func identifier(of type: any PersistentModel.Type) -> PersistentIdentifier {
        if let row, let layout, let identifier = home?.container.unit(of: layout).identifier(layout, row) {
            return identifier
        }
        if let temporary { return temporary }
        let identifier = PersistentIdentifier(
            storeIdentifier: nil, entityName: Schema.entityName(for: type), key: .temporary(UUID()))
        temporary = identifier
        return identifier
    }

    /// The identifier from before the first save.
    var temporaryIdentifier: PersistentIdentifier? { temporary }

    /// Keeps an identifier that somebody may hold after the row it came with is gone.
    func remember(_ identifier: PersistentIdentifier) { temporary = identifier }

    func grow(to count: Int) {
        while values.count < count { values.append(.null) }
    }

    func write(_ slot: Int, _ value: Value) {
        grow(to: slot + 1)
        if !unencodable.isEmpty { unencodable[slot] = nil }
        if state != .detached, state != .inserted, originals[slot] == nil {
            originals[slot] = stored(slot)
            context?.noteChange(of: self)
        }
        values[slot] = value
        if ContextObservers.exist { context?.observers.changed() }
    }

    func decoded<T>(_ slot: Int, _ value: T?) -> T {
        if let value { return value }
        // Initializers set every property, and fetches check what they read.
        preconditionFailure("Slot \(slot) does not hold a \(T.self).")
    }

    func stored(_ slot: Int) -> Value {
        if !unread.isEmpty, unread.contains(slot) { readRest(slot) }
        return slot < values.count ? values[slot] : .null
    }

    /// For a model that is only there to find out what a key path leads to.
    var probe: KeyPathProbe?

    /// Reads what the fetch left out. What can't be read any more is as in a model that isn't there.
    private func readRest(_ slot: Int) {
        if let probe { return probe.note(slot) }
        let slots = unread
        unread = []
        guard let layout else { return }
        let read = home?.reader.read(slots, of: self)
        for slot in slots { values[slot] = read?[slot] ?? layout.slots[slot].placeholder }
    }
}

// MARK: Attributes. What `@Model`'s accessors call; the property's type decides which.

extension ModelBacking {
    public func initialize<T: StorableAttribute>(_ slot: Int, _ value: T) {
        guard !isFetched else { return }
        write(slot, value.storedValue)
    }

    public func get<T: StorableAttribute>(_ slot: Int) -> T { decoded(slot, T(storedValue: stored(slot))) }

    public func set<T: StorableAttribute>(_ slot: Int, _ value: T, of model: any PersistentModel) {
        write(slot, value.storedValue)
    }

    public func initialize<T: RawRepresentable & Codable>(_ slot: Int, _ value: T) where T.RawValue: StorableAttribute {
        guard !isFetched else { return }
        write(slot, value.rawValue.storedValue)
    }

    public func get<T: RawRepresentable & Codable>(_ slot: Int) -> T where T.RawValue: StorableAttribute {
        decoded(slot, T.RawValue(storedValue: stored(slot)).flatMap(T.init(rawValue:)))
    }

    public func set<T: RawRepresentable & Codable>(_ slot: Int, _ value: T, of model: any PersistentModel)
    where T.RawValue: StorableAttribute {
        write(slot, value.rawValue.storedValue)
    }

    public func initialize<T: RawRepresentable & Codable>(_ slot: Int, _ value: T?)
    where T.RawValue: StorableAttribute {
        guard !isFetched else { return }
        write(slot, value?.rawValue.storedValue ?? .null)
    }

    public func get<T: RawRepresentable & Codable>(_ slot: Int) -> T? where T.RawValue: StorableAttribute {
        T.RawValue(storedValue: stored(slot)).flatMap(T.init(rawValue:))
    }

    public func set<T: RawRepresentable & Codable>(_ slot: Int, _ value: T?, of model: any PersistentModel)
    where T.RawValue: StorableAttribute {
        write(slot, value?.rawValue.storedValue ?? .null)
    }

    @_disfavoredOverload
    public func initialize<T: Codable>(_ slot: Int, _ value: T) {
        guard !isFetched else { return }
        encode(slot, value)
    }

    private func encode<T: Codable>(_ slot: Int, _ value: T) {
        attempt(slot, value) {
            let stored = try JSONValue.encode(value)
            // Getters can't throw, and each fetch of the row would.
            guard JSONValue.decode(T.self, stored) != nil else {
                throw SwiftDataError.unreadable
            }
            return stored
        }
    }

    /// - Throws: ``SwiftDataError/unencodableValue`` for what a setter couldn't refuse. Says nothing of the value.
    func checkEncodable(_ slot: Int, of layout: EntityLayout) throws {
        guard !unencodable.isEmpty, let failed = unencodable[slot] else { return }
        let reason = (failed.error as? SwiftDataError)?.message ?? "\(type(of: failed.error))"
        throw SwiftDataError.unencodableValue.because("\(layout.name).\(layout.slots[slot].name): \(reason)")
    }

    /// Setters can't throw: what has no stored form is kept as it is, and refused when it is to be saved.
    func attempt(_ slot: Int, _ value: Any, _ encode: () throws -> Value) {
        do {
            write(slot, try encode())
        } catch {
            write(slot, .null)
            unencodable[slot] = (value, error)
        }
    }

    @_disfavoredOverload
    public func get<T: Codable>(_ slot: Int) -> T {
        if let failed = unencodable[slot], let kept = failed.value as? T { return kept }
        return decoded(slot, JSONValue.decode(T.self, stored(slot)))
    }

    @_disfavoredOverload
    public func set<T: Codable>(_ slot: Int, _ value: T, of model: any PersistentModel) {
        encode(slot, value)
    }
}
