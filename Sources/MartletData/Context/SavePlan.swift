import MartletStore

/// The part of a save that concerns the models of one store, and its results until the save is done.
class SavePlan {
    let context: ModelContext
    private let index: Int
    /// The observers that are notified of the save.
    let changes: StoreChangeHub
    let inserted: [any PersistentModel]
    let changed: [any PersistentModel]
    let deleted: [any PersistentModel]
    /// The row numbers that this save assigns to new models.
    var rows: [ObjectIdentifier: Int64] = [:]
    /// New models whose unique values matched an existing row.
    var upserted: Set<ObjectIdentifier> = []
    /// Changed models, and targets of inserted and changed ones, whose rows somebody else has deleted meanwhile. They
    /// stay deleted, and the rest is saved.
    var vanished = ModelSet()

    /// - Parameter index: the store whose models are saved.
    init(_ context: ModelContext, unit index: Int) {
        self.context = context
        self.index = index
        changes = context.container.units[index].changes
        inserted = context.pending(context.inserted, of: index)
        changed = context.pending(context.changed, of: index)
        deleted = context.pending(context.deleted, of: index)
    }

    /// The row of a model, including one that this save assigns.
    final func row(_ model: any PersistentModel) -> Int64? {
        model._$backing.row ?? rows[ObjectIdentifier(model)]
    }

    /// The value of a column that references a model: NULL for none, and for a deleted one.
    final func reference(to target: (any PersistentModel)?) -> Value {
        guard let target, !target.isDeleted, let row = row(target) else { return .null }
        return .integer(row)
    }

    /// - Throws: ``SwiftDataError/modelValidationFailure`` if a relationship has too few or too many models.
    final func check() throws {
        for model in inserted + changed {
            guard let layout = model._$backing.layout else { continue }
            try checkCounts(model._$backing, layout)
        }
        // A to-many relationship may have changed only through its members.
        var checked: Set<ObjectIdentifier> = []
        for model in inserted + changed + deleted {
            let backing = model._$backing
            guard let layout = backing.layout, layout.hasLimitedOwners else { continue }
            for (index, slot) in layout.slots.enumerated() {
                guard let link = slot.link, !link.isToMany, link.inverse?.isLimited == true else { continue }
                var owners = [backing.one(index)]
                if case .integer(let row) = backing.originals[index] {
                    owners.append(context.resolve(link.destination, row: row))
                }
                for case let owner? in owners
                where !owner.isDeleted && checked.insert(ObjectIdentifier(owner)).inserted {
                    guard let layout = owner._$backing.layout else { continue }
                    try checkCounts(owner._$backing, layout)
                }
            }
        }
    }

    final func checkCounts(_ backing: ModelBacking, _ layout: EntityLayout) throws {
        for (index, slot) in layout.slots.enumerated() {
            guard let link = slot.link, link.isToMany, link.isLimited else { continue }
            let (least, most) = (link.options.minimumModelCount, link.options.maximumModelCount)
            let count = backing.many(index).count
            guard count >= least, most == 0 || count <= most else {
                throw SwiftDataError.modelValidationFailure.because(
                    """
                    \(layout.name).\(link.name) has \(count) models; \(least) to \
                    \(most == 0 ? "any number" : "\(most)") are allowed.
                    """)
            }
        }
    }

    // MARK: After the commit

    struct Identifiers {
        var inserted: Set<PersistentIdentifier>
        var updated: Set<PersistentIdentifier>
        var deleted: Set<PersistentIdentifier>
    }

    /// The identifiers of the saved models. Valid after the commit.
    var identifiers: Identifiers {
        func identifiers(_ models: [any PersistentModel]) -> Set<PersistentIdentifier> {
            var found = Set<PersistentIdentifier>(minimumCapacity: models.count)
            for model in models { found.insert(model.persistentModelID) }
            return found
        }
        let updated = vanished.isEmpty ? changed : changed.filter { !vanished.contains($0) }
        let isUpserted = { [upserted] (model: any PersistentModel) in upserted.contains(ObjectIdentifier(model)) }
        return Identifiers(
            inserted: identifiers(upserted.isEmpty ? inserted : inserted.filter { !isUpserted($0) }),
            updated: identifiers(upserted.isEmpty ? updated : updated + inserted.filter(isUpserted)),
            deleted: identifiers(deleted))
    }

    func finish() {
        // The objects that no longer stand for their rows.
        var former: Set<ObjectIdentifier> = []
        for model in deleted { context.noteGone(model) }
        for model in vanished.all { context.noteGone(model) }
        // The context no longer knows them, so it can't break the cycles between them later.
        for model in deleted + vanished.all { model._$backing.releaseGone() }
        for model in context.pending(context.discarded, of: index) { model._$backing.home = nil }
        for model in inserted {
            guard let row = rows[ObjectIdentifier(model)], let layout = model._$backing.layout else { continue }
            if let known = context.registry.model(layout.table, row), known !== model {
                guard known._$backing.layout !== layout else {
                    merge(model, into: known)
                    former.insert(ObjectIdentifier(model))
                    continue
                }
                // The row is of another class now, whose values the known object can't have.
                context.noteGone(known)
                former.insert(ObjectIdentifier(known))
            }
            settle(model._$backing, layout)
            if upserted.contains(ObjectIdentifier(model)) { unloadEnds(model._$backing) }
            model._$backing.row = row
            model._$backing.state = .stored
            context.registry.add(model._$backing.reference, layout.table, row)
        }
        for model in changed where !vanished.contains(model) {
            guard let layout = model._$backing.layout else { continue }
            settle(model._$backing, layout)
        }
        context.clearPending(of: index)
        if !former.isEmpty { context.forgetReferences(to: former) }
    }

    /// Returns whether the unsaved changes of a stored object are in its row after a new model has updated the row.
    func writesChanges(of known: any PersistentModel) -> Bool { true }

    /// Makes two objects for one row share one backing. It has what is in the row now: the values of the new model, and
    /// the unsaved changes of the known one.
    private func merge(_ model: any PersistentModel, into known: any PersistentModel) {
        let (new, old) = (model._$backing, known._$backing)
        guard let layout = old.layout else { return }
        let kept = writesChanges(of: known) ? Array(old.originals.keys) : []
        settle(new, layout)
        settle(old, layout)
        var values = new.values
        for slot in kept where slot < min(values.count, old.values.count) { values[slot] = old.values[slot] }
        old.values = values
        old.lists = new.lists
        old.unread = []
        old.related.removeAll()
        context.clearChanges(old)
        // Observers of the merged object see the other one's values once they have read it again.
        context.announceAll(model)
        model._$backing = old
        old.reference.add(new.reference)
        context.announceAll(known)
    }

    /// Unloads the relationships that a new model took for empty, since it had no row. The row that it has updated may
    /// have had targets already.
    private func unloadEnds(_ backing: ModelBacking) {
        for (slot, link) in backing.links {
            if case .column = link.storage { continue }
            backing.related[slot] = nil
        }
    }

    /// Sets references to models that had no row when the reference was set.
    private func settle(_ backing: ModelBacking, _ layout: EntityLayout) {
        for (slot, related) in backing.related {
            if case .many(let targets) = related, case .list = layout.slots[slot].link?.storage {
                backing.lists[slot] = targets.filter { !$0.isDeleted }.compactMap(row)
            }
            guard case .one(let target) = related, layout.slots[slot].column != nil else { continue }
            backing.values[slot] = reference(to: target)
        }
        context.clearChanges(backing)
    }
}
