/// A set of models in memory, with their unsaved changes.
///
/// A context and its models may only be used by one thread at a time; it isn't Sendable. Fetching, saving, and
/// accessing a relationship that isn't loaded block the calling thread while SQLite works.
public final class ModelContext {
    public var container: ModelContainer { home.container }
    let home: ModelContextLink
    private let isStandIn: Bool
    /// The author of this context's saves, by which readers of the history can filter. Nil by default.
    public var author: String?
    let autosave = Autosave()
    /// The observers of unsaved changes.
    let observers = ContextObservers()

    var registry: ModelRegistry {
        get { home.registry }
        _modify { yield &home.registry }
    }
    var inserted = ModelSet()
    var changed = ModelSet()
    var deleted = ModelSet()
    /// Models whose deletion has been propagated to related models.
    var propagated = ModelSet()
    /// What their deletion did, in case it is taken back.
    var deletionEffects: [ObjectIdentifier: DeletionEffects] = [:]
    /// Unsaved models that were inserted and deleted again.
    var discarded = ModelSet()
    /// The error of an insertion, or of reading for a getter, which can't throw.
    var refusal: SwiftDataError?
    /// The errors of getters that the context calls itself. Nil otherwise; see ``throwingFailedReads(_:)``.
    var ownFailures: [any Error]?
    /// The related snapshots from a custom store's last fetch, for relationships that are accessed later.
    var relatedRecords: [PersistentIdentifier: SnapshotRecord] = [:]
    private let stateID = UUID()

    /// This context's state as seen by custom stores.
    public var editingState: EditingState { EditingState(id: stateID, author: author) }

    public convenience init(_ container: ModelContainer) {
        self.init(ModelContextLink(container), isStandIn: false)
        home.context = self
    }

    /// - Parameter isStandIn: true for a read-only context for models whose own context is gone.
    init(_ home: ModelContextLink, isStandIn: Bool) {
        self.home = home
        self.isStandIn = isStandIn
        for unit in container.units { unit.snapshots?.call { $0.begin(editingState) } }
    }

    deinit {
        for unit in container.units { unit.snapshots?.call { $0.end(editingState) } }
        guard !isStandIn else { return }
        // Two ends of a relationship keep each other alive.
        for model in registry.all { model._$backing.related.removeAll() }
    }

    // MARK: Pending changes

    /// True if ``save()`` would write something.
    public var hasChanges: Bool { !inserted.isEmpty || !changed.isEmpty || !deleted.isEmpty }
    public var insertedModelsArray: [any PersistentModel] { inserted.all }
    public var changedModelsArray: [any PersistentModel] { changed.all }
    public var deletedModelsArray: [any PersistentModel] { deleted.all }

    /// Inserts a model into this context, with all models that it is related to. They are saved with the next
    /// ``save()``.
    ///
    /// A model that is to be deleted with the next save is not deleted after all. If a save has deleted it already, or
    /// if ``model(for:)`` found none, the next ``save()`` throws ``SwiftDataError/modelNotFound``: insert a new one.
    public func insert<T: PersistentModel>(_ model: T) {
        let backing = model._$backing
        if backing.isStandIn || (backing.context === self && backing.state == .gone && !discarded.contains(model)) {
            refusal = .modelNotFound.because(
                "A \(T.self) that was inserted has been deleted in the store. Insert a new one.")
            return
        }
        take(model, restores: true)
    }

    /// What is left to do for an insertion.
    enum InsertionStep {
        /// - Parameter restores: false to leave a stored model that is to be deleted as it is.
        case take(any PersistentModel, restores: Bool)
        case learn(target: any PersistentModel, model: any PersistentModel, end: Link)
        case restoreEnds(DeletionEffects)
    }

    /// Inserts a model, then all that it leads to, depth first. Not by recursion: a chain of models may be as long as
    /// memory allows.
    private func take(_ model: any PersistentModel, restores: Bool) {
        var steps: [InsertionStep] = takeOne(model, restores: restores).reversed()
        while let step = steps.popLast() {
            switch step {
            case .take(let next, let restores):
                steps.append(contentsOf: takeOne(next, restores: restores).reversed())
            case .learn(let target, let model, let end):
                if target._$backing.context === self { target._$backing.learn(model, through: end) }
            case .restoreEnds(let effects): restoreEnds(effects)
            }
        }
    }

    /// Returns what has to follow, in this order.
    private func takeOne(_ model: any PersistentModel, restores: Bool) -> [InsertionStep] {
        let backing = model._$backing
        guard !backing.isStandIn else { return [] }
        var isBack = false
        model._$adoptInitialValues()
        if backing.state == .stored, backing.context == nil {
            refusal = .modelOfAnotherContext.because(
                """
                A \(type(of: model)) that was inserted is in the store already; its context is gone. Fetch it in this \
                one.
                """)
            return []
        }
        if let owner = backing.context {
            guard owner === self else {
                refusal = .modelOfAnotherContext.because(
                    "A \(type(of: model)) that was inserted belongs to another context. Fetch it in this one.")
                return []
            }
            switch backing.state {
            case .deleted:
                guard restores else { return [] }
                backing.state = .stored
                deleted.remove(model)
                propagated.remove(model)
                if !backing.originals.isEmpty || !backing.originalLinks.isEmpty { changed.add(model) }
                pendingChanged()
                return undoneEffects(of: model)
            case .gone where discarded.contains(model):
                // It was never saved, so it is a new model once more, with all models that it is related to.
                isBack = restores
                discarded.remove(model)
                propagated.remove(model)
                deletionEffects[ObjectIdentifier(model)] = nil
            case .gone, .detached, .inserted, .stored: return []
            }
        }
        guard let layout = container[type(of: model)] else {
            refusal = .invalidSchema.because(
                "\(type(of: model)) is not in the container's schema. Add it where the container is created.")
            return []
        }
        backing.row = nil
        backing.layout = layout
        backing.home = home
        backing.owner = model
        backing.state = .inserted
        backing.grow(to: layout.slots.count)
        inserted.add(model)
        pendingChanged()
        // A new model's to-many relationship is empty, even if no initializer has set it, and must not be read from the
        // store.
        for slot in layout.toManySlots where backing.related[slot] == nil { backing.related[slot] = .many([]) }
        backing.dropRepetitions()
        var steps: [InsertionStep] = []
        for (slot, related) in backing.related {
            guard let link = layout.slots[slot].link else { continue }
            for target in related.models {
                steps.append(.take(target, restores: isBack))
                if let inverse = link.inverse { steps.append(.learn(target: target, model: model, end: inverse)) }
            }
        }
        return steps
    }

    /// Deletes a model with the next ``save()``, and applies its delete rules.
    public func delete<T: PersistentModel>(_ model: T) {
        let backing = model._$backing
        guard backing.context === self else { return }
        switch backing.state {
        case .inserted:
            inserted.remove(model)
            backing.state = .gone
            discarded.add(model)
            pendingChanged()
        case .stored:
            changed.remove(model)
            backing.state = .deleted
            deleted.add(model)
            pendingChanged()
        case .detached, .deleted, .gone: return
        }
    }

    /// Deletes every model that matches a predicate.
    ///
    /// A custom store that conforms to ``DataStoreBatching`` deletes them at once, without delete rules, and a rollback
    /// doesn't restore them.
    /// - Throws: the same as ``fetch(_:)``.
    public func delete<T: PersistentModel>(
        model: T.Type, where predicate: Predicate<T>? = nil, includeSubclasses: Bool = true
    ) throws {
        let entity = try container.entity(T.self)
        if let unit = container.unit(of: entity).snapshots,
            try deleteBatch(predicate, includeSubclasses: includeSubclasses, entity, unit)
        {
            return
        }
        for found in try fetch(FetchDescriptor<T>(predicate: predicate)) {
            guard includeSubclasses || type(of: found) == T.self else { continue }
            delete(found)
        }
    }

    /// Discards all changes since the last save: inserted models leave the context, the others return to their saved
    /// state.
    public func rollback() {
        let wasRefused = refusal != nil
        refusal = nil
        for model in inserted.all + discarded.all {
            let backing = model._$backing
            backing.home = nil
            backing.state = .detached
        }
        for model in changed.all + deleted.all {
            let backing = model._$backing
            for (slot, value) in backing.originals { backing.values[slot] = value }
            backing.state = .stored
            clearChanges(backing)
            announceAll(model)
        }
        let ends = unloadRelationships()
        forgetRelatedRecords()
        clearPending()
        // Of a changed relationship, only one end belongs to a changed model.
        for (slot, model) in ends { announce(slot, of: model) }
        // Observers may have been shown what a getter returned that could not read the store.
        if wasRefused { for model in registry.all { announceAll(model) } }
        observers.changed()
    }

    /// Unloads all relationships once many models are alive: they may be alive only because they refer to each other.
    func unloadIfCrowded() {
        // What was set since the last save can't be loaded again.
        guard registry.isCrowded, !hasChanges else { return }
        // Before observers are notified, since one of them may fetch.
        registry.startUnloading()
        // An observer may track models that this releases, and then has to read the new objects of their rows.
        for (slot, model) in unloadRelationships() { announce(slot, of: model) }
        registry.cleanUnloaded()
    }

    /// Returns the relationships that were loaded and that somebody may observe.
    private func unloadRelationships() -> [(slot: Int, model: any PersistentModel)] {
        var ends: [(slot: Int, model: any PersistentModel)] = []
        for model in registry.all {
            let backing = model._$backing
            if backing.hasRegistrar { for slot in backing.related.keys { ends.append((slot, model)) } }
            backing.related.removeAll()
        }
        return ends
    }

    func clearPending() {
        inserted.removeAll()
        changed.removeAll()
        deleted.removeAll()
        propagated.removeAll()
        deletionEffects.removeAll()
        discarded.removeAll()
    }

    /// Clears the pending changes of one store, if there are several.
    func clearPending(of unit: Int) {
        guard container.units.count > 1 else { return clearPending() }
        func isHere(_ model: any PersistentModel) -> Bool { model._$backing.layout?.unit == unit }
        inserted.removeAll(where: isHere)
        changed.removeAll(where: isHere)
        deleted.removeAll(where: isHere)
        propagated.removeAll(where: isHere)
        deletionEffects = deletionEffects.filter { !isHere($0.value.model) }
        discarded.removeAll(where: isHere)
    }

    /// The members of a set that belong to one store.
    func pending(_ set: ModelSet, of unit: Int) -> [any PersistentModel] {
        container.units.count == 1 ? set.all : set.all.filter { $0._$backing.layout?.unit == unit }
    }

    /// Returns whether ``save()`` would write something to one of the stores.
    func hasChanges(in unit: Int) -> Bool {
        guard hasChanges, container.units.count > 1 else { return hasChanges }
        return [inserted, changed, deleted].contains { !pending($0, of: unit).isEmpty }
    }

    /// Records that a model's row has been deleted permanently.
    func noteGone(_ model: any PersistentModel) {
        let backing = model._$backing
        if let layout = backing.layout, let row = backing.row {
            backing.remember(model.persistentModelID)
            registry.remove(layout.table, row)
        }
        backing.state = .gone
        clearChanges(backing)
    }

    func clearChanges(_ backing: ModelBacking) {
        backing.originals.removeAll()
        backing.originalLinks.removeAll()
        backing.unencodable.removeAll()
    }

    // MARK: For backings

    func noteChange(of backing: ModelBacking) {
        guard backing.state == .stored, let owner = backing.owner else { return }
        changed.add(owner)
        pendingChanged()
    }

    /// Keeps a model registered whose relationship changed, even if only the other end has something to save.
    func noteTouched(_ backing: ModelBacking) {
        pendingChangedAgain()
        guard backing.owner != nil, let row = backing.row, let layout = backing.layout else { return }
        registry.add(backing.reference, layout.table, row)
        observers.changed()
    }

    /// Inserts a related model into this context. Returns false if it belongs to another context; the next save then
    /// throws.
    ///
    /// Doesn't insert a model that stands for a missing one: after the save, a relationship to it is empty, like one to
    /// a deleted model.
    ///
    /// - Parameter restores: false to leave a stored model that is to be deleted as it is. A relationship to it is
    ///   empty after the save.
    @discardableResult
    func adopt(_ model: any PersistentModel, restores: Bool = false) -> Bool {
        take(model, restores: restores)
        return model._$backing.context === self || model._$backing.isStandIn
    }
}
