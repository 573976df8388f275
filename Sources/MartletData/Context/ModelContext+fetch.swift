import GRDB
package import MartletStore

extension ModelContext {
    /// The models that the descriptor describes, unsaved changes of this context included unless it says otherwise.
    ///
    /// Models that the context has already are the same objects, brought up to date unless they have unsaved changes.
    /// - Throws: ``SwiftDataError`` with `.unsupportedPredicate` or `.unsupportedSortDescriptor` where SQL has no
    ///   counterpart, `.corruptValue` where a row holds what an attribute can't; what ``save()`` would throw where
    ///   there are unsaved changes; `StoreError`.
    public func fetch<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) throws -> [T] {
        let entity = try container.entity(T.self)
        let unit: TableUnit
        switch try unitToRead(entity) {
        case .tables(let tables): unit = tables
        case .snapshots(let store):
            let models = try fetch(descriptor, entity, store)
            for keyPath in descriptor.relationshipKeyPathsForPrefetching { try prefetch(keyPath, of: models, entity) }
            return models
        }
        let columns = try PartialFetch(descriptor, entity).columns
        let (rows, plan) = try read(descriptor, entity, unit, \.models) { statement in
            try FetchedRow.all(statement, entity, columns)
        }
        var models: [T] = []
        models.reserveCapacity(rows.count)
        registry.reserve(rows.count)
        for row in rows { if let model = cast(try model(row, plan), to: T.self) { models.append(model) } }
        for keyPath in descriptor.relationshipKeyPathsForPrefetching { try prefetch(keyPath, of: models, entity) }
        return models
    }

    /// How many models ``fetch(_:)`` would return.
    public func fetchCount<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) throws -> Int {
        let entity = try container.entity(T.self)
        let unit: TableUnit
        switch try unitToRead(entity) {
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
        switch try unitToRead(entity) {
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

    /// The SQL of a fetch, for tests and for a look at its plan.
    package func sql<T: PersistentModel>(for descriptor: FetchDescriptor<T>) throws -> (sql: String, arguments: [Value])
    {
        let layout = container.unit(of: try container.entity(T.self)).layout
        let text = try FetchQuery(descriptor, layout) { [self] in row($0, $1, nil) }.models
        return (text.sql, text.arguments)
    }

    // MARK: Reading

    /// Ends a transaction that was only there to be looked at.
    private struct Done: Error {}

    /// The store to fetch from, after what is to be saved by itself before a fetch.
    func unitToRead(_ entity: EntityLayout) throws -> StoreUnit {
        try autosave.willFetch(self)
        return container.unit(of: entity)
    }

    func read<T: PersistentModel, R>(
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
        try plan.check()
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
                refresh(known, fetched.values, unread: fetched.unread)
            }
            return known
        }
        if let new = plan?.newModels[table.name]?[fetched.row] { return new }
        let backing = ModelBacking(layout: fetched.entity, row: fetched.row, values: fetched.values, context: self)
        backing.unread = fetched.unread
        return register(backing, fetched.entity, fetched.row)
    }

    /// Makes the object of a row that the context doesn't have yet.
    func register(_ backing: ModelBacking, _ entity: EntityLayout, _ row: Int64) -> any PersistentModel {
        func make<M: PersistentModel>(_ type: M.Type) -> any PersistentModel {
            BackingHandover.give(backing, to: { M(_$backing: backing) })
        }
        let model = make(entity.type)
        backing.owner = model
        registry.add(backing.reference, entity.table, row)
        return model
    }

    /// Brings an object to what is in its store, which may be what another context or program saved.
    /// - Parameter unread: the slots that `stored` says nothing of.
    func refresh(
        _ model: any PersistentModel, _ stored: [Value], _ lists: [Int: [Int64]] = [:], unread: Set<Int> = []
    ) {
        let backing = model._$backing
        guard let layout = backing.layout else { return }
        // What a relationship leads to may have changed without this row.
        if !hasChanges { backing.related.removeAll() }
        let (oldValues, oldLists, readNow) = (backing.values, backing.lists, backing.unread.subtracting(unread))
        var values = stored
        for slot in layout.ephemeralSlots { values[slot] = oldValues[slot] }
        for slot in unread { values[slot] = oldValues[slot] }
        backing.unread.formIntersection(unread)
        guard values != oldValues || lists != oldLists else { return }
        backing.values = values
        backing.lists = lists
        for slot in values.indices where values[slot] != oldValues[slot] || lists[slot] != oldLists[slot] {
            backing.related[slot] = nil
            // Nobody has seen what is read for the first time.
            if !readNow.contains(slot) { announce(slot, of: model) }
        }
    }
}

/// As `as?`, which takes its time to find out what is known at once for most models.
func cast<M: PersistentModel>(_ model: any PersistentModel, to type: M.Type) -> M? {
    Swift.type(of: model) == type ? unsafeDowncast(model as AnyObject, to: type) : model as? M
}
