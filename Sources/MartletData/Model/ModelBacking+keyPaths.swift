import MartletStore
import Synchronization

// Values by key path: for models that weren't written by `@Model`, and for code that works on any model.
extension ModelBacking {
    func value<M: PersistentModel, Value>(at keyPath: KeyPath<M, Value>) -> Value {
        let property = Self.property(at: keyPath)
        switch property.kind {
        case .attribute(_, let type):
            if let failed = unencodable[property.slot], let kept = failed.value as? Value { return kept }
            let stored = stored(property.slot)
            return decoded(property.slot, type.load(stored) as? Value)
        case .relationship(_, let type) where type.isToMany:
            let models: Value? = Self.list(many(property.slot), of: type.destination)
            return decoded(property.slot, models)
        case .relationship(_, let type) where type.isOptional:
            return decoded(property.slot, Self.optional(one(property.slot), of: type.destination))
        case .relationship:
            let model =
                one(property.slot)
                ?? layout?.slots[property.slot].link.map { ModelContext.absentModel(of: $0.destination) }
            return decoded(property.slot, model as? Value)
        case .unknown(let reason): preconditionFailure("\(M.self).\(property.name): \(reason)")
        }
    }

    /// Tells no observer: the accessors of a property do.
    func set<M: PersistentModel, Value>(_ value: Value, at keyPath: KeyPath<M, Value>) {
        let property = Self.property(at: keyPath)
        switch property.kind {
        case .attribute(_, let type):
            attempt(property.slot, value) {
                let stored = try type.store(value)
                guard type.accepts(stored) else { throw SwiftDataError.unreadable }
                return stored
            }
        case .relationship(_, let type):
            let one = value as? any PersistentModel
            let many = (value as? [any PersistentModel]) ?? []
            guard let owner else {
                grow(to: property.slot + 1)
                related[property.slot] = type.isToMany ? .many(many) : .one(one)
                return
            }
            if type.isToMany {
                setMany(property.slot, many, of: owner)
            } else {
                setOne(property.slot, one, of: owner)
            }
        case .unknown(let reason): preconditionFailure("\(M.self).\(property.name): \(reason)")
        }
    }

    private static func list<Value>(_ models: [any PersistentModel], of type: any PersistentModel.Type) -> Value? {
        func open<D: PersistentModel>(_ type: D.Type) -> Value? { models as? [D] as? Value }
        return open(type)
    }

    private static func optional<Value>(_ model: (any PersistentModel)?, of type: any PersistentModel.Type) -> Value? {
        func open<D: PersistentModel>(_ type: D.Type) -> Value? { (model as? D) as? Value }
        return open(type)
    }

    // MARK: Slots

    private struct Property {
        let slot: Int
        let name: String
        let kind: Schema.PropertyMetadata.Kind
    }

    /// By the model's type, and then by key path. Safe because key paths are immutable.
    private struct Properties: @unchecked Sendable {
        var byType: [ObjectIdentifier: [AnyKeyPath: Property]] = [:]
    }

    private static let properties = Mutex(Properties())

    private static func property<M: PersistentModel>(at keyPath: PartialKeyPath<M>) -> Property {
        let type = ObjectIdentifier(M.self)
        // Described outside the lock: a default value may be a model.
        if properties.withLock({ $0.byType[type] == nil }) {
            let described = M.schemaMetadata.enumerated().map {
                ($1.keyPath, Property(slot: $0, name: $1.name, kind: $1.kind))
            }
            properties.withLock {
                $0.byType[type] = Dictionary(described, uniquingKeysWith: { first, _ in first })
            }
        }
        nonisolated(unsafe) let keyPath = keyPath  // safe because key paths are immutable
        guard let found = properties.withLock({ $0.byType[type]?[keyPath] }) else {
            preconditionFailure("\(keyPath) leads to no stored property of \(M.self).")
        }
        return found
    }
}

// MARK: What `@Model` keeps

/// Where a model at the top of a hierarchy has its values: for what `@Model` writes, and for init accessors beside it.
public struct ModelStorage<Model: PersistentModel> {
    public let initial: ModelBacking

    /// Of an instance whose initializer begins.
    public init() { initial = .forInitializer(of: Model.self) }
    public init(_ backing: ModelBacking) { initial = backing }

    public func getValue<Value>(forKey keyPath: KeyPath<Model, Value>) -> Value { initial.value(at: keyPath) }
    public func getTransformableValue<Value>(forKey keyPath: KeyPath<Model, Value>) -> Value {
        initial.value(at: keyPath)
    }
    public func setValue<Value>(forKey keyPath: KeyPath<Model, Value>, to newValue: Value) {
        // What an initializer assigns to a model that is made of a row are default values.
        guard !initial.isFetched || initial.owner != nil else { return }
        initial.set(newValue, at: keyPath)
    }
    public func setTransformableValue<Value>(forKey keyPath: KeyPath<Model, Value>, to newValue: Value) {
        setValue(forKey: keyPath, to: newValue)
    }
}

/// The same for a subclass: until the superclass's initializer has run.
public struct InitialStorage<Model: PersistentModel> {
    public let initial = InitialValues()

    public init() {}

    public func setValue<Value>(forKey keyPath: KeyPath<Model, Value>, to newValue: Value) {
        initial.add { backing, _ in ModelStorage<Model>(backing).setValue(forKey: keyPath, to: newValue) }
    }
    public func setTransformableValue<Value>(forKey keyPath: KeyPath<Model, Value>, to newValue: Value) {
        setValue(forKey: keyPath, to: newValue)
    }
}
