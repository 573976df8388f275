/// Models in memory, and what is to be saved of them.
///
/// A context and its models are used by one thread at a time; it isn't Sendable. Fetching, saving, and touching a
/// relationship that wasn't loaded block the calling thread while SQLite works.
public final class ModelContext {
    public var container: ModelContainer { home.container }
    let home: ModelHome
    private let isStandIn: Bool
    /// Who saves. Readers of the history can filter by it. None by default.
    public var author: String?
    let autosave = Autosave()
    /// Who is told of changes that aren't saved.
    let observers = ContextObservers()

    var registry: ModelRegistry {
        get { home.registry }
        _modify { yield &home.registry }
    }
    var inserted = ModelSet()
    var changed = ModelSet()
    var deleted = ModelSet()
    /// Models whose deletion has been carried to what they are related to.
    var propagated = ModelSet()
    /// Unsaved models that were deleted again.
    var discarded = ModelSet()
    /// What was wrong with an insertion, which can't throw.
    var refusal: SwiftDataError?
    /// What stores of one's own returned with the last fetch, for relationships that are touched later.
    var relatedRecords: [PersistentIdentifier: SnapshotRecord] = [:]
    private let stateID = UUID()

    /// This context, as stores of one's own know it.
    public var editingState: EditingState { EditingState(id: stateID, author: author) }

    public convenience init(_ container: ModelContainer) {
        self.init(ModelHome(container), isStandIn: false)
        home.context = self
    }

    /// - Parameter isStandIn: true for one that only reads, for models whose context is gone.
    init(_ home: ModelHome, isStandIn: Bool) {
        self.home = home
        self.isStandIn = isStandIn
        for unit in container.units { unit.snapshots?.call { $0.begin(editingState) } }
    }

    deinit {
        for unit in container.units { unit.snapshots?.call { $0.end(editingState) } }
        guard !isStandIn else { return }
        // Two ends of a relationship hold each other.
        for model in registry.all { model._$backing.related.removeAll() }
    }

    // MARK: What is pending

    /// True when ``save()`` would write something.
    public var hasChanges: Bool { !inserted.isEmpty || !changed.isEmpty || !deleted.isEmpty }
    public var insertedModelsArray: [any PersistentModel] { inserted.all }
    public var changedModelsArray: [any PersistentModel] { changed.all }
    public var deletedModelsArray: [any PersistentModel] { deleted.all }

    /// Makes a model part of this context, with everything that it is related to. Saved with the next ``save()``.
    public func insert<T: PersistentModel>(_ model: T) {
        let backing = model._$backing
        model._$adoptInitialValues()
        if backing.state == .stored, backing.context == nil {
            refusal = .modelOfAnotherContext.because(
                "A \(T.self) that was inserted is in the store already; its context is gone. Fetch it in this one.")
            return
        }
        if let owner = backing.context {
            guard owner === self else {
                refusal = .modelOfAnotherContext.because(
                    "A \(T.self) that was inserted belongs to another context. Fetch it in this one.")
                return
            }
            if backing.state == .deleted {
                backing.state = .stored
                deleted.remove(model)
                propagated.remove(model)
                if !backing.originals.isEmpty || !backing.originalLinks.isEmpty { changed.add(model) }
                pendingChanged()
            }
            return
        }
        guard let layout = container[type(of: model)] else {
            refusal = .invalidSchema.because(
                "\(type(of: model)) is not in the container's schema. Add it where the container is created.")
            return
        }
        backing.row = nil
        backing.layout = layout
        backing.home = home
        backing.owner = model
        backing.state = .inserted
        backing.grow(to: layout.slots.count)
        inserted.add(model)
        pendingChanged()
        // A new model's list is empty, and isn't read from the store, also where no initializer has set it.
        for slot in layout.toManySlots where backing.related[slot] == nil { backing.related[slot] = .many([]) }
        backing.dropRepetitions()
        for (slot, related) in backing.related {
            guard let link = layout.slots[slot].link else { continue }
            for target in related.models {
                if adopt(target), let inverse = link.inverse { target._$backing.learn(model, through: inverse) }
            }
        }
    }

    /// Deletes a model with the next ``save()``, and what its delete rules say.
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

    /// Deletes every model that a predicate holds for.
    ///
    /// A store of one's own that is ``DataStoreBatching`` deletes them at once, without delete rules, and no rollback
    /// brings them back.
    /// - Throws: as ``fetch(_:)``.
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

    /// Forgets every change since the last save: inserted models leave the context, the others are as the store has
    /// them.
    public func rollback() {
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
        for model in registry.all { model._$backing.related.removeAll() }
        forgetRelatedRecords()
        clearPending()
        observers.changed()
    }

    func clearPending() {
        inserted.removeAll()
        changed.removeAll()
        deleted.removeAll()
        propagated.removeAll()
        discarded.removeAll()
    }

    /// Of one store, where there are several.
    func clearPending(of unit: Int) {
        guard container.units.count > 1 else { return clearPending() }
        func isHere(_ model: any PersistentModel) -> Bool { model._$backing.layout?.unit == unit }
        inserted.removeAll(where: isHere)
        changed.removeAll(where: isHere)
        deleted.removeAll(where: isHere)
        propagated.removeAll(where: isHere)
        discarded.removeAll(where: isHere)
    }

    /// The members of a set that one store keeps.
    func pending(_ set: ModelSet, of unit: Int) -> [any PersistentModel] {
        container.units.count == 1 ? set.all : set.all.filter { $0._$backing.layout?.unit == unit }
    }

    /// True when ``save()`` would write something to one of the stores.
    func hasChanges(in unit: Int) -> Bool {
        guard hasChanges, container.units.count > 1 else { return hasChanges }
        return [inserted, changed, deleted].contains { !pending($0, of: unit).isEmpty }
    }

    /// A model's row has been deleted for good.
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

    /// A relationship's other end changed in memory only; there is nothing to save for this one.
    func noteTouched(_ backing: ModelBacking) {
        guard backing.owner != nil, let row = backing.row, let layout = backing.layout else { return }
        registry.add(backing.reference, layout.table, row)
        observers.changed()
    }

    /// Makes a related model part of this context. False where it is of another one, which the next save will say.
    @discardableResult
    func adopt(_ model: any PersistentModel) -> Bool {
        func open<T: PersistentModel>(_ model: T) { insert(model) }
        open(model)
        return model._$backing.context === self
    }
}
