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
