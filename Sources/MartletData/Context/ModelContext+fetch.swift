import GRDB
package import MartletStore

extension ModelContext {
    /// The models that the descriptor describes, unsaved changes of this context included unless it says otherwise.
    ///
    /// Models that the context has already are the same objects, brought up to date unless they have unsaved changes.
    /// - Throws: ``SwiftDataError`` with `.unsupportedPredicate` or `.unsupportedSortDescriptor` where SQL has no counterpart,
    ///   `.corruptValue` where a row holds what an attribute can't; what ``save()`` would throw where there are unsaved changes;
    ///   `StoreError`.
    public func fetch<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) throws -> [T] {
        let entity = try container.entity(T.self)
        let unit: TableUnit
        switch container.unit(of: entity) {
        case .tables(let tables): unit = tables
        case .snapshots(let store):
            let models = try fetch(descriptor, entity, store)
            for keyPath in descriptor.relationshipKeyPathsForPrefetching { try prefetch(keyPath, of: models, entity) }
            return models
        }
        let (rows, plan) = try read(descriptor, entity, unit, \.models) { statement in
            try FetchedRow.all(statement, entity)
        }
        var models: [T] = []
        models.reserveCapacity(rows.count)
        for row in rows { if let model = cast(try model(row, plan), to: T.self) { models.append(model) } }
        for keyPath in descriptor.relationshipKeyPathsForPrefetching { try prefetch(keyPath, of: models, entity) }
        return models
    }

    /// How many models ``fetch(_:)`` would return.
    public func fetchCount<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) throws -> Int {
        let entity = try container.entity(T.self)
        let unit: TableUnit
        switch container.unit(of: entity) {
        case .tables(let tables): unit = tables
        case .snapshots(let store): return try fetchCount(descriptor, entity, store)
        }
        return try read(descriptor, entity, unit, \.count) { statement in
            try statement.first { Int($0.integer(0)) } ?? 0
        }.0
    }

    /// The identifiers of what ``fetch(_:)`` would return.
    public func fetchIdentifiers<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) throws -> [PersistentIdentifier]
    {
        let entity = try container.entity(T.self)
        let unit: TableUnit
        switch container.unit(of: entity) {
        case .tables(let tables): unit = tables
        case .snapshots(let store): return try fetchIdentifiers(descriptor, entity, store)
        }
        let (rows, plan) = try read(descriptor, entity, unit, \.identifiers) { statement in
            var found: [(row: Int64, name: String?)] = []
            while try statement.step() { found.append((statement.integer(0), statement.optionalText(1))) }
            return found
        }
        return rows.map { row, name in
            if let new = plan?.newModels[entity.table.name]?[row] { return new.persistentModelID }
            return PersistentIdentifier(
                storeIdentifier: unit.identifier, entityName: name ?? entity.name, key: .row(row)
            )
        }
    }

    /// Calls a closure with each of the models, and stops at the first error that it throws.
    ///
    /// - Parameter batchSize: how many are read at a time.
    public func enumerate<T: PersistentModel>(
        _ descriptor: FetchDescriptor<T>, batchSize: Int = 5_000, block: (T) throws -> Void
    ) throws {
        let identifiers = try fetchIdentifiers(descriptor)
        for start in stride(from: 0, to: identifiers.count, by: max(1, batchSize)) {
            let batch = identifiers[start..<min(start + max(1, batchSize), identifiers.count)]
            for identifier in batch {
                guard let model = self.model(for: identifier) as? T else { continue }
                try block(model)
            }
        }
    }

    /// The SQL of a fetch, for tests and for a look at its plan.
    package func sql<T: PersistentModel>(for descriptor: FetchDescriptor<T>) throws -> (sql: String, arguments: [Value])
    {
        let layout = container.unit(of: try container.entity(T.self)).layout
        let text = try FetchQuery(descriptor, layout) { [self] in row($0, $1, nil) }.models
        return (text.sql, text.arguments)
    }

    // MARK: Single models

    /// The model with an identifier, where the context has it already.
    public func registeredModel<T: PersistentModel>(for identifier: PersistentIdentifier) -> T? {
        registered(identifier) as? T
    }

    /// The model with an identifier, or nil where there is none in the store.
    public func model(for identifier: PersistentIdentifier) -> (any PersistentModel)? {
        if let known = registered(identifier) { return known }
        guard let entity = container[named: identifier.entityName],
            let row = container.unit(of: entity).row(identifier)
        else { return nil }
        return resolve(entity, row: row)
    }

    private func registered(_ identifier: PersistentIdentifier) -> (any PersistentModel)? {
        guard let entity = container[named: identifier.entityName] else { return nil }
        if let row = container.unit(of: entity).row(identifier) { return registry.model(entity.table, row) }
        guard identifier.isTemporary else { return nil }
        return (inserted.all + registry.all).first { $0._$backing.temporaryIdentifier == identifier }
    }

    // MARK: Reading

    /// Ends a transaction that was only there to be looked at.
    private struct Done: Error {}

    private func read<T: PersistentModel, R>(
        _ descriptor: FetchDescriptor<T>, _ entity: EntityLayout, _ unit: TableUnit, _ text: (FetchQuery<T>) -> SQLText,
        _ body: (PreparedStatement) throws -> R
    ) throws -> (R, FlushPlan?) {
        func run(_ db: Database, _ plan: FlushPlan?) throws -> R {
            let query = try FetchQuery(descriptor, unit.layout) { [self] in row($0, $1, plan) }
            return try Self.run(db, unit.statements, text(query), body)
        }
        let needsFlush =
            descriptor.includePendingChanges && hasChanges(in: entity.unit) && !unit.store.configuration.isReadOnly
        guard needsFlush else {
            return (try unit.access.read { try run($0, nil) }, nil)
        }
        // Unsaved changes are written, looked at, and taken back: what SQL finds is what it would find once saved.
        try prepareFlush()
        let plan = FlushPlan(self, unit: entity.unit, unit)
        var result: R?
        do {
            try unit.access.write(author: author) { db in
                try plan.run(db)
                result = try run(db, plan)
                throw Done()
            }
        } catch is Done {}
        guard let result else { throw SwiftDataError.unsupportedPredicate }
        return (result, plan)
    }

    private func row(_ identifier: PersistentIdentifier, _ entity: EntityLayout?, _ plan: FlushPlan?) -> Int64? {
        if !identifier.isTemporary { return entity.flatMap { container.unit(of: $0).row(identifier) } }
        return registered(identifier).flatMap { plan?.row($0) ?? $0._$backing.row }
    }

    static func run<R>(
        _ db: Database, _ statements: StatementCache, _ text: SQLText, _ body: (PreparedStatement) throws -> R
    ) throws -> R {
        // Long lists make a statement of their own for each length.
        let statement =
            text.arguments.count > 32 ? try PreparedStatement(db, text.sql) : try statements(db, text.sql)
        for (index, value) in text.arguments.enumerated() { statement.bind(Int32(index + 1), value) }
        defer { statement.reset() }
        return try body(statement)
    }

    // MARK: Objects

    /// The object for a row: the one that the context has, or a new one.
    func model(_ fetched: FetchedRow, _ plan: FlushPlan?) throws -> any PersistentModel {
        let table = fetched.entity.table
        if let known = registry.model(table, fetched.row) {
            let backing = known._$backing
            if backing.state == .stored, backing.originals.isEmpty, backing.originalLinks.isEmpty, plan == nil {
                refresh(known, fetched.values)
            }
            return known
        }
        if let new = plan?.newModels[table.name]?[fetched.row] { return new }
        return register(
            ModelBacking(layout: fetched.entity, row: fetched.row, values: fetched.values, context: self),
            fetched.entity, fetched.row)
    }

    /// Makes the object of a row that the context doesn't have yet.
    func register(_ backing: ModelBacking, _ entity: EntityLayout, _ row: Int64) -> any PersistentModel {
        func make<M: PersistentModel>(_ type: M.Type) -> any PersistentModel {
            BackingHandover.give(backing, to: { M(_$backing: backing) })
        }
        let model = make(entity.type)
        backing.owner = model
        registry.add(model, entity.table, row)
        return model
    }

    /// Brings an object to what is in its store, which may be what another context or program saved.
    func refresh(_ model: any PersistentModel, _ stored: [Value], _ lists: [Int: [Int64]] = [:]) {
        let backing = model._$backing
        guard let layout = backing.layout else { return }
        // What a relationship leads to may have changed without this row.
        if !hasChanges { backing.related.removeAll() }
        let (oldValues, oldLists) = (backing.values, backing.lists)
        var values = stored
        for slot in layout.ephemeralSlots { values[slot] = oldValues[slot] }
        guard values != oldValues || lists != oldLists else { return }
        backing.values = values
        backing.lists = lists
        for slot in values.indices where values[slot] != oldValues[slot] || lists[slot] != oldLists[slot] {
            backing.related[slot] = nil
            announce(slot, of: model)
        }
    }
}

/// As `as?`, which takes its time to find out what is known at once for most models.
func cast<M: PersistentModel>(_ model: any PersistentModel, to type: M.Type) -> M? {
    Swift.type(of: model) == type ? unsafeDowncast(model as AnyObject, to: type) : model as? M
}
