import MartletStore

extension ModelContext {
    /// The model with an identifier, if the context already has it.
    public func registeredModel<T: PersistentModel>(for identifier: PersistentIdentifier) -> T? {
        registered(identifier) as? T
    }

    /// The model with an identifier, from memory or from the store.
    ///
    /// If there is none, returns an unsaved model with this ``PersistentModel/persistentModelID`` that is in no context
    /// and reports itself as deleted. A relationship that is set to it is empty after the save. Its attributes have
    /// their default values, or else zeros and empty texts; reading one that has neither (an enumeration with neither a
    /// default value nor `CaseIterable`) traps. Use ``existingModel(for:)`` to get nil instead.
    public func model(for persistentModelID: PersistentIdentifier) -> any PersistentModel {
        existingModel(for: persistentModelID) ?? absentModel(persistentModelID)
    }

    /// The model with an identifier, from memory or from the store, or nil if there is none. Not in SwiftData.
    ///
    /// Also nil if the store can't be read. Then saves fail until ``rollback()``; see ``save()``.
    public func existingModel(for identifier: PersistentIdentifier) -> (any PersistentModel)? {
        if let known = registered(identifier) { return known }
        guard let entity = container[named: identifier.entityName],
            let row = container.unit(of: entity).row(identifier)
        else { return nil }
        return resolve(entity, row: row)
    }

    func registered(_ identifier: PersistentIdentifier) -> (any PersistentModel)? {
        guard let entity = container[named: identifier.entityName] else { return nil }
        if let row = container.unit(of: entity).row(identifier) { return registry.model(entity.table, row) }
        guard identifier.isTemporary else { return nil }
        return (inserted.all + registry.all).first { $0._$backing.temporaryIdentifier == identifier }
    }

    private func absentModel(_ identifier: PersistentIdentifier) -> any PersistentModel {
        guard let entity = container[named: identifier.entityName] else {
            let backing = ModelBacking()
            backing.state = .gone
            backing.remember(identifier)
            return UnknownModel(_$backing: backing)
        }
        return Self.absentModel(of: entity, identifier, in: container)
    }

    /// A stand-in for a model that doesn't exist.
    ///
    /// - Parameter container: The stand-in keeps it alive, because its relationships lead to entities of the container.
    static func absentModel(
        of entity: EntityLayout, _ identifier: PersistentIdentifier? = nil, in container: ModelContainer?
    ) -> any PersistentModel {
        func make<M: PersistentModel>(_ type: M.Type) -> any PersistentModel {
            absentModel(type, entity, identifier, in: container)
        }
        return make(entity.type)
    }

    static func absentModel<M: PersistentModel>(
        _ type: M.Type, _ entity: EntityLayout, _ identifier: PersistentIdentifier?, in container: ModelContainer?
    ) -> M {
        let backing = ModelBacking()
        backing.home = container.map { ModelContextLink($0) }
        backing.state = .gone
        backing.isStandIn = true
        backing.layout = entity
        if let identifier { backing.remember(identifier) }
        backing.values = entity.slots.map(\.placeholder)
        let model = M(_$backing: backing)
        backing.owner = model
        return model
    }
}

extension EntityLayout.Slot {
    /// The value for a model that isn't in the store: the default value, or a zero that the attribute's type accepts.
    var placeholder: Value {
        guard case .attribute(_, let type) = kind else { return .null }
        if let value = type.defaultValue?() { return value }
        let zeros: [Value] = [
            .null, .integer(0), .real(0), .text(""), .blob([]), .text("[]"), .text("{}"), .text("."),
            .text("00000000-0000-0000-0000-000000000000"),
        ]
        return zeros.first(where: type.accepts) ?? type.firstCase ?? type.empty?() ?? .null
    }

    /// False if a model that doesn't exist can't return a value for it.
    var hasPlaceholder: Bool {
        guard case .attribute(_, let type) = kind else { return true }
        return type.accepts(placeholder)
    }
}

/// The model that ``ModelContext/model(for:)`` returns for an identifier whose entity isn't in the schema.
final class UnknownModel: _ModelRoot {
    var _$backing: ModelBacking

    init(_$backing backing: ModelBacking) { _$backing = backing }

    static var schemaMetadata: [Schema.PropertyMetadata] { [] }
}
