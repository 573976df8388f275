import MartletStore

// Fetches from custom stores.
extension ModelContext {
    func fetch<T: PersistentModel>(_ descriptor: FetchDescriptor<T>, _ entity: EntityLayout, _ unit: SnapshotUnit)
        throws -> [T]
    {
        guard hasChanges(in: entity.unit) else { return try fetchSaved(descriptor, entity, unit) }
        guard descriptor.includePendingChanges else {
            // Changed objects no longer have their saved values; the objects of another context do.
            let other = ModelContext(container)
            let rows = try withExtendedLifetime(other) {
                try other.fetchSaved(descriptor, entity, unit).map { unit.number($0.persistentModelID) }
            }
            let found = resolve(entity, rows, unit)
            if let failure = found.failure { throw failure }
            return found.models.compactMap { $0 as? T }
        }
        try prepareFlush()
        let saved = try models(FetchDescriptor<T>(), entity, unit)
        let new = pending(inserted, of: entity.unit).compactMap { $0 as? T }
        return try filtered(saved.filter { !$0.isDeleted } + new, descriptor)
    }

    func fetchCount<T: PersistentModel>(_ descriptor: FetchDescriptor<T>, _ entity: EntityLayout, _ unit: SnapshotUnit)
        throws -> Int
    {
        try answer(descriptor, entity, unit, \.count) { try $0.fetchCount($1) }
    }

    func fetchIdentifiers<T: PersistentModel>(
        _ descriptor: FetchDescriptor<T>, _ entity: EntityLayout, _ unit: SnapshotUnit
    ) throws -> [PersistentIdentifier] {
        try answer(descriptor, entity, unit, { $0.map(\.persistentModelID) }) { try $0.fetchIdentifiers($1) }
    }

    /// Asks the store. Where its answer can't be used as it is, fetches the models and answers from those.
    private func answer<T: PersistentModel, Answer>(
        _ descriptor: FetchDescriptor<T>, _ entity: EntityLayout, _ unit: SnapshotUnit, _ fromModels: ([T]) -> Answer,
        _ ask: (any SnapshotStoring, DataStoreFetchRequest<T>) throws -> Answer
    ) throws -> Answer {
        if !hasChanges(in: entity.unit), descriptor.fetchLimit == nil, descriptor.fetchOffset == nil {
            do {
                let request = DataStoreFetchRequest(descriptor: descriptor, editingState: editingState)
                return try unit.call { try ask($0, request) }
            } catch DataStoreError.preferInMemoryFilter, DataStoreError.preferInMemorySort {}
        }
        return fromModels(try fetch(descriptor, entity, unit))
    }

    private func fetchSaved<T: PersistentModel>(
        _ descriptor: FetchDescriptor<T>, _ entity: EntityLayout, _ unit: SnapshotUnit
    ) throws -> [T] {
        // A store that supports limits reads no more than needed; for one that doesn't, the limit does no harm.
        var wanted = descriptor
        wanted.fetchLimit = descriptor.fetchLimit.map { limit in
            let (sum, isTooLarge) = max(0, limit).addingReportingOverflow(max(0, descriptor.fetchOffset ?? 0))
            return isTooLarge ? .max : sum
        }
        wanted.fetchOffset = nil
        do {
            return part(of: try models(wanted, entity, unit), descriptor)
        } catch DataStoreError.preferInMemorySort {
            var unsorted = descriptor
            (unsorted.sortBy, unsorted.fetchLimit, unsorted.fetchOffset) = ([], nil, nil)
            do {
                var models = try models(unsorted, entity, unit)
                try throwingFailedReads { models.sort(using: descriptor.sortBy) }
                return part(of: models, descriptor)
            } catch DataStoreError.preferInMemoryFilter {
                return try filtered(try models(FetchDescriptor<T>(), entity, unit), descriptor)
            }
        } catch DataStoreError.preferInMemoryFilter {
            return try filtered(try models(FetchDescriptor<T>(), entity, unit), descriptor)
        }
    }

    private func models<T: PersistentModel>(
        _ descriptor: FetchDescriptor<T>, _ entity: EntityLayout, _ unit: SnapshotUnit
    ) throws -> [T] {
        let request = DataStoreFetchRequest(descriptor: descriptor, editingState: editingState)
        let result = try unit.call { try $0.fetch(request) }
        forgetRelatedRecords()
        note(result.related)
        let names = Set(entity.family.map(\.name))
        return try result.fetched.filter { names.contains($0.identifier.entityName) }
            .map { try model($0, unit) }.compactMap { $0 as? T }
    }

    private func filtered<T: PersistentModel>(_ models: [T], _ descriptor: FetchDescriptor<T>) throws -> [T] {
        var models = models
        try throwingFailedReads {
            if let predicate = descriptor.predicate { models = try models.filter { try evaluate(predicate, $0) } }
            if !descriptor.sortBy.isEmpty { models.sort(using: descriptor.sortBy) }
        }
        return part(of: models, descriptor)
    }

    /// - Throws: also if the predicate reads a model that can't be read.
    private func evaluate<T: PersistentModel>(_ predicate: Predicate<T>, _ model: T) throws -> Bool {
        let isMatch = try predicate.evaluate(model)
        try checkOwnReads()
        return isMatch
    }

    private func part<T: PersistentModel>(of models: [T], _ descriptor: FetchDescriptor<T>) -> [T] {
        let rest = models.dropFirst(max(0, descriptor.fetchOffset ?? 0))
        return Array(descriptor.fetchLimit.map { rest.prefix(max(0, $0)) } ?? rest)
    }

    /// Loads the targets of a relationship of many models, with one request to the store.
    func prefetch<T: PersistentModel>(_ slot: Int, _ link: Link, _ models: [T], _ unit: SnapshotUnit) throws {
        var rows: Set<Int64> = []
        for backing in models.map(\._$backing) {
            if case .integer(let row) = backing.stored(slot) { rows.insert(row) }
            rows.formUnion(backing.lists[slot] ?? [])
        }
        let held = resolve(link.destination, rows.sorted(), unit)
        if let failure = held.failure { throw failure }
        for model in models { _ = model._$backing.targets(slot, link) }
        withExtendedLifetime(held) {}
    }

    // MARK: Deleting by a predicate

    /// Deletes models as one batch of the store: at once, without delete rules, and irreversibly. Returns false if the
    /// store doesn't support that.
    func deleteBatch<T: PersistentModel>(
        _ predicate: Predicate<T>?, includeSubclasses: Bool, _ entity: EntityLayout, _ unit: SnapshotUnit
    ) throws -> Bool {
        let known = registry.all.compactMap { $0 as? T } + inserted.all.compactMap { $0 as? T }
        let gone = try throwingFailedReads {
            try known.filter { model in
                guard includeSubclasses || type(of: model) == T.self else { return false }
                return try predicate.map { try evaluate($0, model) } ?? true
            }
        }
        let request = DataStoreBatchDeleteRequest(
            predicate: predicate, includeSubclasses: includeSubclasses, editingState: editingState)
        guard try unit.call({ try $0.delete(request) }) else { return false }
        forgetRelatedRecords()
        for model in gone { forget(model) }
        for model in gone where model._$backing.row != nil { model._$backing.releaseGone() }
        observers.changed()
        unit.changes.saved()
        return true
    }

    /// Records that a model's row is gone.
    private func forget(_ model: any PersistentModel) {
        guard model._$backing.row != nil else {
            func open<M: PersistentModel>(_ model: M) { delete(model) }
            return open(model)
        }
        noteGone(model)
        changed.remove(model)
        deleted.remove(model)
    }
}
