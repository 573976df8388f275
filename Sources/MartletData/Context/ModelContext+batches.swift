import MartletStore

extension ModelContext {
    /// Fetches the models that match the descriptor, reading them from the store on access.
    ///
    /// - Parameter batchSize: the number of models that are read at a time.
    /// - Throws: the same as ``fetch(_:)``.
    public func fetch<T: PersistentModel>(
        _ descriptor: FetchDescriptor<T>, batchSize: Int
    ) throws -> FetchResultsCollection<T> {
        let found = try rows(descriptor)
        let prefetched = descriptor.relationshipKeyPathsForPrefetching
        return FetchResultsCollection(count: found.count, batchSize: batchSize) { [self] range in
            // The row may belong to another class by now.
            let models = self.models(found, range).map {
                $0 as? T ?? Self.absentModel(T.self, found.entity, $0.persistentModelID, in: container)
            }
            for keyPath in prefetched { try? prefetch(keyPath, of: models, found.entity) }
            return models
        }
    }

    /// The identifiers of the models that ``fetch(_:batchSize:)`` would return.
    public func fetchIdentifiers<T: PersistentModel>(
        _ descriptor: FetchDescriptor<T>, batchSize: Int
    ) throws -> FetchResultsCollection<PersistentIdentifier> {
        let found = try rows(descriptor)
        return FetchResultsCollection(count: found.count, batchSize: batchSize) { [self] range in
            range.map { identifier(found, $0) }
        }
    }

    /// Calls a closure with each of the models, and stops at the first error that it throws.
    ///
    /// - Parameters:
    ///   - batchSize: the number of models that are read at a time.
    ///   - allowEscapingMutations: whether the closure may leave changes for a later save. They keep models in memory.
    /// - Throws: ``SwiftDataError/mutatedWhileEnumerating`` at the end of a batch in which the closure left changes
    ///   without permission; the closure's errors; the same as ``fetch(_:)``.
    public func enumerate<T: PersistentModel>(
        _ fetch: FetchDescriptor<T>, batchSize: Int = 5000, allowEscapingMutations: Bool = false,
        block: (T) throws -> Void
    ) throws {
        let found = try rows(fetch)
        let before = pendingCount
        let size = max(1, batchSize)
        for first in stride(from: 0, to: found.count, by: size) {
            for case let model as T in models(found, first..<min(first + size, found.count)) { try block(model) }
            guard allowEscapingMutations || pendingCount <= before else {
                throw SwiftDataError.mutatedWhileEnumerating.because(
                    "Save in the closure, or pass allowEscapingMutations: true. The changes are still pending.")
            }
        }
    }

    private var pendingCount: Int { inserted.all.count + changed.all.count + deleted.all.count }

    // MARK: Rows

    /// The results of a fetch, without the values.
    private struct FoundRows {
        var entity: EntityLayout
        var rows: [Int64]
        /// The entities of the rows, if the table has several. Empty otherwise.
        var names: [String]
        /// Models that have no row yet, by position.
        var new: [Int: any PersistentModel]

        var count: Int { rows.count }
    }

    private func rows<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) throws -> FoundRows {
        let entity = try container.entity(T.self)
        let unit: TableUnit
        switch try unitToRead(entity) {
        case .tables(let tables): unit = tables
        case .snapshots(let store): return try rows(descriptor, entity, store)
        }
        let hasNames = entity.table.hasTypeColumn
        let (found, plan) = try read(descriptor, entity, unit, \.identifiers) { statement in
            var found = FoundRows(entity: entity, rows: [], names: [], new: [:])
            while try statement.step() {
                found.rows.append(statement.integer(0))
                if hasNames { found.names.append(statement.optionalText(1) ?? entity.name) }
            }
            return found
        }
        guard let new = plan?.newModels[entity.table.name], !new.isEmpty else { return found }
        var result = found
        for (position, row) in found.rows.enumerated() { result.new[position] = new[row] }
        return result
    }

    private func rows<T: PersistentModel>(
        _ descriptor: FetchDescriptor<T>, _ entity: EntityLayout, _ unit: SnapshotUnit
    ) throws -> FoundRows {
        var found = FoundRows(entity: entity, rows: [], names: [], new: [:])
        for (position, identifier) in try fetchIdentifiers(descriptor, entity, unit).enumerated() {
            // A model that was never saved has no number.
            let new = unit.row(identifier) == nil ? registered(identifier) : nil
            found.new[position] = new
            found.rows.append(new == nil ? unit.number(identifier) : 0)
        }
        return found
    }

    private func identifier(_ found: FoundRows, _ position: Int) -> PersistentIdentifier {
        if let new = found.new[position] { return new.persistentModelID }
        let unit = container.unit(of: found.entity)
        if let identifier = unit.snapshots?.identifier(found.rows[position]) { return identifier }
        return PersistentIdentifier(
            storeIdentifier: unit.identifier,
            entityName: found.names.isEmpty ? found.entity.name : found.names[position], key: .row(found.rows[position])
        )
    }

    /// The models at these positions; deleted or unreadable ones appear as ``model(for:)`` returns them.
    private func models(_ found: FoundRows, _ range: Range<Int>) -> [any PersistentModel] {
        let table = found.entity.table
        // An object of another class than the row has must be replaced.
        func isKnown(_ position: Int) -> Bool {
            guard let known = registry.model(table, found.rows[position]) else { return false }
            return found.names.isEmpty || known._$backing.layout?.name == found.names[position]
        }
        let wanted = range.filter { found.new[$0] == nil && !isKnown($0) }.map { found.rows[$0] }
        // Held until all are requested: the registry doesn't keep models alive.
        let read = (try? select(found.entity, TableLayout.key, in: wanted)) ?? []
        defer { withExtendedLifetime(read) {} }
        return range.map { position in
            found.new[position] ?? registry.model(table, found.rows[position])
                ?? model(for: identifier(found, position))
        }
    }
}
