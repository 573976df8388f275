import MartletStore

// Converts between models and the snapshots of custom stores.
extension ModelContext {
    /// The record of a model in memory, with related models as identifiers.
    func record(_ model: any PersistentModel) -> SnapshotRecord {
        let backing = model._$backing
        var record = SnapshotRecord(identifier: model.persistentModelID)
        guard let layout = backing.layout else { return record }
        for (index, slot) in layout.slots.enumerated() {
            guard let link = slot.link else {
                if slot.column != nil { record.values[slot.name] = backing.stored(index) }
                continue
            }
            record.links[slot.name] = identifiers(backing, index, link)
        }
        return record
    }

    private func identifiers(_ backing: ModelBacking, _ slot: Int, _ link: Link) -> [PersistentIdentifier] {
        let unit = container.unit(of: link.destination)
        if backing.related[slot] == nil {
            // Not loaded since it was read, and needn't be loaded now.
            if case .list = link.storage {
                return (backing.lists[slot] ?? []).compactMap { unit.identifier(link.destination, $0) }
            }
            if case .column = link.storage, case .integer(let row) = backing.stored(slot) {
                return unit.identifier(link.destination, row).map { [$0] } ?? []
            }
        }
        return backing.targets(slot, link).filter { !$0.isDeleted }.map(\.persistentModelID)
    }

    /// The object for a record: the one that the context has, or a new one.
    func model(_ record: SnapshotRecord, _ unit: SnapshotUnit) throws -> any PersistentModel {
        guard let entity = unit.layout[named: record.identifier.entityName] else {
            throw SwiftDataError.corruptValue.because(
                "The store returned a \(record.identifier.entityName), which its schema lacks.")
        }
        let row = unit.number(record.identifier)
        if let known = registry.model(entity.table, row) {
            let backing = known._$backing
            if backing.state == .stored, backing.originals.isEmpty, backing.originalLinks.isEmpty {
                try refresh(known, record, unit)
            }
            return known
        }
        let (values, lists) = try contents(record, entity, unit)
        let backing = ModelBacking(layout: entity, row: row, values: values, context: self)
        backing.lists = lists
        return register(backing, entity, row)
    }

    /// Updates an object to the store's state.
    func refresh(_ model: any PersistentModel, _ record: SnapshotRecord, _ unit: SnapshotUnit) throws {
        guard let layout = model._$backing.layout else { return }
        let (values, lists) = try contents(record, layout, unit)
        refresh(model, values, lists)
    }

    private func contents(_ record: SnapshotRecord, _ entity: EntityLayout, _ unit: SnapshotUnit) throws
        -> (values: [Value], lists: [Int: [Int64]])
    {
        var values = entity.initialValues
        var lists: [Int: [Int64]] = [:]
        for (index, slot) in entity.slots.enumerated() {
            switch slot.kind {
            case .attribute where slot.column == nil: continue
            case .attribute(_, let type):
                let value = record.values[slot.name] ?? .null
                guard type.accepts(value) else {
                    throw SwiftDataError.corruptValue.because(
                        "The store returned a value of \(entity.name).\(slot.name) of another type.")
                }
                values[index] = value
            case .relationship(let link):
                let rows = (record.links[slot.name] ?? []).map(unit.number)
                if link.isToMany {
                    lists[index] = rows
                } else if let row = rows.first {
                    values[index] = .integer(row)
                }
            }
        }
        return (values, lists)
    }

    // MARK: Faults

    /// The objects for rows, in their order, without those that the store doesn't have.
    func resolve(_ entity: EntityLayout, _ rows: [Int64], _ unit: SnapshotUnit) -> LoadedModels {
        var loaded = LoadedModels()
        var found: [Int64: any PersistentModel] = [:]
        var missing: [PersistentIdentifier] = []
        for row in rows {
            if let known = registry.model(entity.table, row) {
                found[row] = known
            } else if let identifier = unit.identifier(row) {
                if let record = relatedRecords[identifier], let model = try? model(record, unit) {
                    found[row] = model
                } else {
                    missing.append(identifier)
                }
            }
        }
        for record in missing.isEmpty ? [] : records(missing, entity, unit, &loaded.failure) {
            if let model = try? model(record, unit) { found[unit.number(record.identifier)] = model }
        }
        loaded.models = rows.compactMap { found[$0] }.filter { $0._$backing.state != .gone }
        return loaded
    }

    /// Reads single models.
    private func records(
        _ identifiers: [PersistentIdentifier], _ entity: EntityLayout, _ unit: SnapshotUnit,
        _ failure: inout (any Error)?
    ) -> [SnapshotRecord] {
        let wanted = Set(identifiers)
        let state = editingState
        var found =
            (try? unit.call { try $0.cached(identifiers, state) })?.filter { wanted.contains($0.identifier) } ?? []
        let rest = wanted.subtracting(found.map(\.identifier))
        guard !rest.isEmpty else { return found }
        func open<M: PersistentModel>(_ type: M.Type) throws -> [SnapshotRecord] {
            func fetch(_ descriptor: FetchDescriptor<M>) throws -> [SnapshotRecord] {
                let request = DataStoreFetchRequest(descriptor: descriptor, editingState: state)
                return try unit.call { try $0.fetch(request).fetched }
            }
            let list = Array(rest)
            do {
                return try fetch(FetchDescriptor(predicate: #Predicate { list.contains($0.persistentModelID) }))
            } catch {
                // The store may not support such a predicate.
                return try fetch(FetchDescriptor())
            }
        }
        do {
            found += try open(entity.type).filter { rest.contains($0.identifier) }
        } catch {
            failure = error
        }
        return found
    }

    func note(_ related: [SnapshotRecord]) {
        for record in related { relatedRecords[record.identifier] = record }
    }

    func forgetRelatedRecords() { relatedRecords.removeAll() }
}
