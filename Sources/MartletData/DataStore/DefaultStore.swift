import MartletStore

/// The store that a ``ModelConfiguration`` describes, for code that uses stores directly.
///
/// A container reads and writes its tables without it.
public final class DefaultStore: DataStore, DataStoreBatching, HistoryProviding {
    public typealias Configuration = ModelConfiguration
    public typealias Snapshot = DefaultSnapshot
    public typealias TokenType = DefaultHistoryToken

    public let configuration: ModelConfiguration
    public let schema: Schema
    public let identifier: String
    private let container: ModelContainer

    public var name: String { configuration.name }

    /// - Throws: ``SwiftDataError/configuration`` if the configuration has no schema; the errors of opening a
    ///   container.
    public init(_ configuration: ModelConfiguration, migrationPlan: (any SchemaMigrationPlan.Type)?) throws {
        guard let schema = configuration.schema else {
            throw SwiftDataError.configuration.because("A separate store needs a configuration with a schema.")
        }
        self.configuration = configuration
        self.schema = schema
        container = try ModelContainer(for: schema, migrationPlan: migrationPlan, configurations: configuration)
        identifier = container.store.identifier.uuidString
        SnapshotEntities.note(container.units[0].layout)
    }

    private func context(_ state: EditingState) -> ModelContext {
        let context = ModelContext(container)
        context.author = state.author
        return context
    }

    public func fetch<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws
        -> DataStoreFetchResult<T, DefaultSnapshot>
    {
        let context = context(request.editingState)
        let models = try context.fetch(request.descriptor)
        return DataStoreFetchResult(
            descriptor: request.descriptor, fetchedSnapshots: models.map { DefaultSnapshot(context.record($0)) })
    }

    public func fetchCount<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> Int {
        try context(request.editingState).fetchCount(request.descriptor)
    }

    public func fetchIdentifiers<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws
        -> [PersistentIdentifier]
    {
        try context(request.editingState).fetchIdentifiers(request.descriptor)
    }

    public func save(_ request: DataStoreSaveChangesRequest<DefaultSnapshot>) throws
        -> DataStoreSaveChangesResult<DefaultSnapshot>
    {
        let context = context(request.editingState)
        var models: [PersistentIdentifier: any PersistentModel] = [:]
        for snapshot in request.inserted {
            guard let entity = container[named: snapshot.persistentIdentifier.entityName] else {
                throw SwiftDataError.invalidSchema.because(
                    "The store has no \(snapshot.persistentIdentifier.entityName).")
            }
            models[snapshot.persistentIdentifier] = context.insertEmpty(entity)
        }
        for identifier in (request.updated + request.deleted).map(\.persistentIdentifier) {
            guard let model = context.existingModel(for: identifier) else {
                throw SwiftDataError.modelNotFound.because("\(identifier) isn't in the store.")
            }
            models[identifier] = model
        }
        for snapshot in request.inserted + request.updated {
            guard let model = models[snapshot.persistentIdentifier] else { continue }
            try context.apply(snapshot.record, to: model) { models[$0] ?? context.existingModel(for: $0) }
        }
        for snapshot in request.deleted {
            func open<M: PersistentModel>(_ model: M) { context.delete(model) }
            if let model = models[snapshot.persistentIdentifier] { open(model) }
        }
        try context.save()
        var remapped: [PersistentIdentifier: PersistentIdentifier] = [:]
        for snapshot in request.inserted {
            remapped[snapshot.persistentIdentifier] = models[snapshot.persistentIdentifier]?.persistentModelID
        }
        return DataStoreSaveChangesResult(for: identifier, remappedIdentifiers: remapped)
    }

    public func delete<T: PersistentModel>(_ request: DataStoreBatchDeleteRequest<T>) throws {
        let context = context(request.editingState)
        try context.delete(
            model: T.self, where: request.predicate, includeSubclasses: request.includeSubclasses)
        try context.save()
    }

    public func erase() throws { try container.deleteModels() }

    public func fetchHistory(_ descriptor: HistoryDescriptor<DefaultHistoryTransaction>) throws
        -> [DefaultHistoryTransaction]
    {
        try ModelContext(container).fetchHistory(descriptor)
    }

    public func deleteHistory(_ descriptor: HistoryDescriptor<DefaultHistoryTransaction>) throws {
        try ModelContext(container).deleteHistory(descriptor)
    }
}

extension ModelContext {
    /// Inserts a new model without values.
    fileprivate func insertEmpty(_ entity: EntityLayout) -> any PersistentModel {
        func make<M: PersistentModel>(_ type: M.Type) -> any PersistentModel {
            let model = M(_$backing: ModelBacking())
            insert(model)
            return model
        }
        return make(entity.type)
    }

    fileprivate func apply(
        _ record: SnapshotRecord, to model: any PersistentModel,
        _ find: (PersistentIdentifier) -> (any PersistentModel)?
    ) throws {
        let backing = model._$backing
        guard let layout = backing.layout else { return }
        for (index, slot) in layout.slots.enumerated() {
            switch slot.kind {
            case .attribute where slot.column == nil: continue
            case .attribute(_, let type):
                let value = record.values[slot.name] ?? .null
                guard type.accepts(value) else {
                    throw SwiftDataError.corruptValue.because("\(layout.name).\(slot.name) has another type.")
                }
                if backing.stored(index) != value { backing.write(index, value) }
            case .relationship(let link) where slot.keyPath != nil:
                let targets = (record.links[slot.name] ?? []).compactMap(find)
                if link.isToMany {
                    let now = backing.many(index).map { ObjectIdentifier($0) }
                    if now != targets.map({ ObjectIdentifier($0) }) { backing.setMany(index, targets, of: model) }
                } else {
                    backing.setOne(index, targets.first, of: model)
                }
            case .relationship: continue
            }
        }
    }
}
