import GRDB
package import MartletStore

extension ModelContext {
    /// Fetches the models that match the descriptor, including unsaved changes of this context unless it says
    /// otherwise.
    ///
    /// For models that the context already has, it returns the same objects, refreshed unless they have unsaved
    /// changes.
    /// - Throws: ``SwiftDataError`` with `.unsupportedPredicate` or `.unsupportedSortDescriptor` if they can't be
    ///   translated to SQL, `.corruptValue` if a row has a value that an attribute's type can't represent; the errors
    ///   of ``save()`` if there are unsaved changes; `StoreError`.
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
        func add(_ model: any PersistentModel) { if let model = cast(model, to: T.self) { models.append(model) } }
        if let plan {
            let current = try current(rows, plan, entity, columns)
            for row in rows { if let model = current[row.row] { add(model) } }
        } else {
            for row in rows { add(try model(row, nil)) }
        }
        for keyPath in descriptor.relationshipKeyPathsForPrefetching { try prefetch(keyPath, of: models, entity) }
        return models
    }

    /// The number of models that ``fetch(_:)`` would return.
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

    /// The identifiers of the models that ``fetch(_:)`` would return.
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

    /// The SQL of a fetch, for tests and for inspecting its query plan.
    package func sql<T: PersistentModel>(for descriptor: FetchDescriptor<T>) throws -> (sql: String, arguments: [Value])
    {
        let layout = container.unit(of: try container.entity(T.self)).layout
        let text = try FetchQuery(descriptor, layout) { [self] in row($0, $1, nil) }.models
        return (text.sql, text.arguments)
    }

    // MARK: Reading

    /// Rolls back a transaction that only served to read.
    private struct Done: Error {}

    /// The store to fetch from, after the autosave that precedes a fetch.
    func unitToRead(_ entity: EntityLayout) throws -> StoreUnit {
        try autosave.willFetch(self)
        unloadIfCrowded()
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
        // Unsaved changes are written, queried, and rolled back: SQL finds what it would find after a save.
        try prepareFlush()
        let plan = try throwingFailedReads {
            let plan = FlushPlan(self, unit: entity.unit, unit)
            try plan.check()
            return plan
        }
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
        // Long lists produce a statement of their own for each length, which isn't worth caching.
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
        if let known = registry.model(table, fetched.row), !isOfAnotherClass(known, fetched) {
            let backing = known._$backing
            if backing.state == .stored, backing.originals.isEmpty, backing.originalLinks.isEmpty, plan == nil {
                refresh(known, fetched.values, unread: fetched.unread)
            }
            return known
        }
        if let new = plan?.newModels[table.name]?[fetched.row] { return new }
        if let former = registry.model(table, fetched.row) {
            changed.remove(former)
            noteGone(former)
            forgetReferences(to: [ObjectIdentifier(former)])
        }
        let backing = ModelBacking(layout: fetched.entity, row: fetched.row, values: fetched.values, context: self)
        backing.unread = fetched.unread
        return register(backing, fetched.entity, fetched.row)
    }

    /// The objects for rows that were read in a flush that is rolled back, by row.
    ///
    /// A model without unsaved changes gets its values from the store, since the flush may have changed its references.
    /// Leaves out rows that somebody has deleted meanwhile.
    private func current(
        _ rows: [FetchedRow], _ plan: FlushPlan, _ entity: EntityLayout, _ columns: [Int]?
    ) throws -> [Int64: any PersistentModel] {
        let new = plan.newModels[entity.table.name] ?? [:]
        var found: [Int64: any PersistentModel] = [:]
        var unchanged: [Int64] = []
        for fetched in rows {
            if new[fetched.row] != nil || registry.model(entity.table, fetched.row)?.hasChanges == true {
                found[fetched.row] = try model(fetched, plan)
            } else {
                unchanged.append(fetched.row)
            }
        }
        for model in try select(entity, TableLayout.key, in: unchanged, columns) {
            if let row = model._$backing.row { found[row] = model }
        }
        return found
    }

    /// Returns true if somebody has made a stored row one of another class. The object of the former class can't have
    /// its values.
    func isOfAnotherClass(_ model: any PersistentModel, _ fetched: FetchedRow) -> Bool {
        fetched.isOfKnownClass && model._$backing.state == .stored && model._$backing.layout !== fetched.entity
    }

    /// Unloads relationships to objects that no longer stand for their rows, so that they lead to those that do on
    /// next access.
    func forgetReferences(to former: Set<ObjectIdentifier>) {
        for model in registry.all {
            let backing = model._$backing
            for (slot, related) in backing.related
            where related.models.contains(where: { former.contains(ObjectIdentifier($0)) }) {
                backing.related[slot] = nil
            }
        }
    }

    /// Creates the object for a row that the context doesn't have yet.
    func register(_ backing: ModelBacking, _ entity: EntityLayout, _ row: Int64) -> any PersistentModel {
        func make<M: PersistentModel>(_ type: M.Type) -> any PersistentModel {
            BackingHandover.give(backing, to: { M(_$backing: backing) })
        }
        let model = make(entity.type)
        backing.owner = model
        registry.add(backing.reference, entity.table, row)
        return model
    }

    /// Updates an object to the state of its store, which another context or program may have saved.
    /// - Parameter unread: the slots for which `stored` has no value.
    func refresh(
        _ model: any PersistentModel, _ stored: [Value], _ lists: [Int: [Int64]] = [:], unread: Set<Int> = []
    ) {
        let backing = model._$backing
        guard let layout = backing.layout else { return }
        // The targets of a relationship may have changed without this row.
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
            // Nobody has seen a value that is read for the first time.
            if !readNow.contains(slot) { announce(slot, of: model) }
        }
    }
}

/// Like `as?`, which is slow, but with a fast path for exact types.
func cast<M: PersistentModel>(_ model: any PersistentModel, to type: M.Type) -> M? {
    Swift.type(of: model) == type ? unsafeDowncast(model as AnyObject, to: type) : model as? M
}
