import MartletStore

// Relationships. `@Model`'s accessors call these; the property's type selects the overload.
extension ModelBacking {
    public func initialize<M: PersistentModel>(_ slot: Int, _ value: M) { initializeOne(slot, value) }
    public func initialize<M: PersistentModel>(_ slot: Int, _ value: M?) { initializeOne(slot, value) }
    public func initialize<M: PersistentModel>(_ slot: Int, _ value: [M]) { initializeMany(slot, value) }
    public func initialize<M: PersistentModel>(_ slot: Int, _ value: [M]?) { initializeMany(slot, value ?? []) }

    /// Returns a model even if another program deleted the row of a required one: a stand-in that reports itself as
    /// deleted.
    public func get<M: PersistentModel>(_ slot: Int) -> M {
        if case .one(let model?) = related[slot], let model = cast(model, to: M.self) { return model }
        return decoded(slot, requiredOne(slot).flatMap { cast($0, to: M.self) })
    }
    public func get<M: PersistentModel>(_ slot: Int) -> M? { one(slot).flatMap { cast($0, to: M.self) } }
    /// Leaves out a row that somebody has made one of another class.
    public func get<M: PersistentModel>(_ slot: Int) -> [M] { many(slot).compactMap { cast($0, to: M.self) } }
    public func get<M: PersistentModel>(_ slot: Int) -> [M]? { many(slot).compactMap { cast($0, to: M.self) } }

    public func set<M: PersistentModel>(_ slot: Int, _ value: M, of model: any PersistentModel) {
        setOne(slot, value, of: model)
    }

    public func set<M: PersistentModel>(_ slot: Int, _ value: M?, of model: any PersistentModel) {
        setOne(slot, value, of: model)
    }

    public func set<M: PersistentModel>(_ slot: Int, _ value: [M], of model: any PersistentModel) {
        setMany(slot, value, of: model)
    }

    public func set<M: PersistentModel>(_ slot: Int, _ value: [M]?, of model: any PersistentModel) {
        setMany(slot, value ?? [], of: model)
    }

    private func initializeOne(_ slot: Int, _ value: (any PersistentModel)?) {
        guard !isFetched else { return }
        grow(to: slot + 1)
        related[slot] = .one(value)
    }

    private func initializeMany(_ slot: Int, _ value: [any PersistentModel]) {
        guard !isFetched else { return }
        grow(to: slot + 1)
        related[slot] = .many(value)
    }

    // MARK: Reading

    func one(_ slot: Int) -> (any PersistentModel)? {
        if case .one(let model) = related[slot] {
            guard let model, model._$backing.state != .gone else { return nil }
            return model
        }
        if let probe, let link = layout?.slots[slot].link { return probe.follow(link) }
        guard let home, let layout, let link = layout.slots[slot].link, row != nil else { return nil }
        if case .column = link.storage, stored(slot).isNull { return nil }
        let found = load(slot, link, layout, home)
        if found.isComplete { remember(slot, .one(found.models.first)) }
        return found.models.first
    }

    /// The target of a required relationship, or a stand-in for it.
    func requiredOne(_ slot: Int) -> (any PersistentModel)? {
        one(slot)
            ?? layout?.slots[slot].link.map { ModelContext.absentModel(of: $0.destination, in: home?.container) }
    }

    func many(_ slot: Int) -> [any PersistentModel] {
        if case .many(let models) = related[slot] {
            return models.contains { $0._$backing.state == .gone }
                ? models.filter { $0._$backing.state != .gone } : models
        }
        guard let home, let layout, let link = layout.slots[slot].link, row != nil else { return [] }
        let found = load(slot, link, layout, home)
        if found.isComplete { remember(slot, .many(found.models)) }
        return found.models
    }

    private func load(_ slot: Int, _ link: Link, _ layout: EntityLayout, _ home: ModelContextLink) -> LoadedModels {
        let reader = home.reader
        let found = reader.load(link, slot, of: self)
        if let failure = found.failure { reader.noteFailedRead(failure, of: "\(layout.name).\(link.name)") }
        return found
    }

    /// The models that a relationship leads to, whether to-one or to-many, for something that must not miss any:
    /// including those that others have added since it was loaded.
    ///
    /// - Throws: an error for a model that can't be read.
    func allTargets(_ slot: Int, _ link: Link) throws -> [any PersistentModel] {
        guard row != nil, let context else { return targets(slot, link) }
        switch link.storage {
        // Stored with this model, so it is as new as the model's attributes.
        case .column, .list: if related[slot] != nil { return targets(slot, link) }
        case .inverse, .join: break
        }
        let found = context.load(link, slot, of: self)
        if let failure = found.failure ?? found.leftOut { throw failure }
        guard let before = originalLinks[slot] else { return found.models }
        let now = many(slot)
        let old = Set(before.map { ObjectIdentifier($0) })
        let removed = old.subtracting(now.map { ObjectIdentifier($0) })
        let added = now.filter { !old.contains(ObjectIdentifier($0)) }
        return (found.models.filter { !removed.contains(ObjectIdentifier($0)) } + added).withoutRepetitions
    }

    /// Only with a context: otherwise nobody would break the reference cycle between two related models.
    private func remember(_ slot: Int, _ found: Related) {
        if context != nil { replace(slot, found) }
    }

    /// Replaces a relationship. The members of the others stay known: a program may set a to-one relationship for each
    /// model that it adds to a long list.
    private func replace(_ slot: Int, _ found: Related) {
        var known = members
        if !known.isEmpty { known[slot] = nil }
        related[slot] = found
        members = known
    }

    /// Releases related models that are gone and that getters leave out: all except the target of a required
    /// relationship.
    func releaseGone() {
        for (slot, found) in related {
            switch found {
            case .many(let models): related[slot] = .many(models.filter { $0._$backing.state != .gone })
            case .one(let model?):
                guard model._$backing.state == .gone, layout?.slots[slot].link?.isOptional == true else { continue }
                related[slot] = .one(nil)
            case .one: continue
            }
        }
    }

    // MARK: Writing

    func setOne(_ slot: Int, _ value: (any PersistentModel)?, of model: any PersistentModel) {
        guard let context, let layout, let link = layout.slots[slot].link else {
            related[slot] = .one(value)
            return
        }
        let old = one(slot)
        guard old !== value else { return }
        if let value, !context.adopt(value) { return }
        point(slot, link, to: value)
        guard let inverse = link.inverse else { return }
        old?._$backing.forget(model, through: inverse)
        value?._$backing.learn(model, through: inverse)
    }

    /// Sets this end, without touching the other one.
    private func point(_ slot: Int, _ link: Link, to value: (any PersistentModel)?) {
        if case .column = link.storage {
            write(slot, value?._$backing.row.map { .integer($0) } ?? .null)
        } else {
            context?.noteTouched(self)
        }
        replace(slot, .one(value))
    }

    func setMany(_ slot: Int, _ value: [any PersistentModel], of model: any PersistentModel) {
        guard let context, let layout, let link = layout.slots[slot].link else {
            related[slot] = .many(value)
            return
        }
        let old = many(slot)
        let kept = Set(value.map { ObjectIdentifier($0) })
        // A to-many relationship contains a model once, and only models of this context.
        let value = kept.count == value.count ? value : value.withoutRepetitions
        let known = Set(old.map { ObjectIdentifier($0) })
        let added = value.filter { !known.contains(ObjectIdentifier($0)) }
        guard added.allSatisfy({ context.adopt($0) }) else { return }
        noteLinks(slot, link, old)
        replace(slot, .many(value))
        context.noteTouched(self)
        guard let inverse = link.inverse else { return }
        for gone in old where !kept.contains(ObjectIdentifier(gone)) {
            gone._$backing.forget(model, through: inverse)
        }
        for new in added { new._$backing.learn(model, through: inverse) }
    }

    /// Removes duplicates from to-many relationships that were set before the model was inserted.
    func dropRepetitions() {
        for case (let slot, .many(let models)) in related { related[slot] = .many(models.withoutRepetitions) }
    }

    /// - Parameter old: evaluated the first time only, since evaluating it examines each model.
    private func noteLinks(_ slot: Int, _ link: Link, _ old: @autoclosure () -> [any PersistentModel]) {
        guard link.hasRowsOfItsOwn, state == .stored, originalLinks[slot] == nil else { return }
        originalLinks[slot] = old()
        context?.noteChange(of: self)
    }

    /// Loads a many-to-many relationship, and notes its links before one of them changes.
    private func loadLinks(_ slot: Int, _ link: Link) {
        guard link.hasRowsOfItsOwn else { return }
        if related[slot] == nil { _ = many(slot) }
        noteLinks(slot, link, many(slot))
    }

    /// Removes the model at the other end from this end.
    func forget(_ model: any PersistentModel, through link: Link) {
        guard !link.isToMany else { return removeFromList(link) { $0 === model } }
        guard let slot = layout?.slot(named: link.name), let owner else { return }
        if one(slot) === model { point(slot, link, to: nil) }
        context?.announce(slot, of: owner)
    }

    /// Removes models from this end, which is to-many.
    func forget(_ models: Set<ObjectIdentifier>, through link: Link) {
        removeFromList(link) { models.contains(ObjectIdentifier($0)) }
    }

    private func removeFromList(_ link: Link, where isGone: (any PersistentModel) -> Bool) {
        guard let slot = layout?.slot(named: link.name), let owner else { return }
        loadLinks(slot, link)
        if case .many(let models) = related[slot] {
            replace(slot, .many(models.filter { !isGone($0) }))
            context?.noteTouched(self)
        }
        context?.announce(slot, of: owner)
    }

    /// Adds a model to a to-many relationship if it is loaded and doesn't contain the model.
    ///
    /// Mutates the array in place: a shared one would be copied for each element.
    private func add(_ model: any PersistentModel, to slot: Int) -> Bool {
        guard related.keys.contains(slot) else { return false }
        var known = members
        guard case .many(var models) = related.removeValue(forKey: slot) else { return false }
        // Otherwise each model that is added to a long array would be searched for in it.
        if known[slot] == nil, models.count >= 64 { known[slot] = Members(models) }
        let isNew =
            known[slot].map { $0.models.insert(ObjectIdentifier(model)).inserted }
            ?? !models.contains(where: { $0 === model })
        if isNew { models.append(model) }
        related[slot] = .many(models)
        members = known
        return isNew
    }

    /// Adds the model at the other end to this end.
    func learn(_ model: any PersistentModel, through link: Link) {
        guard let slot = layout?.slot(named: link.name), let owner else { return }
        if link.isToMany {
            loadLinks(slot, link)
            if add(model, to: slot) { context?.noteTouched(self) }
        } else {
            let before = one(slot)
            guard before !== model else { return }
            point(slot, link, to: model)
            if let before, let inverse = link.inverse { before._$backing.forget(owner, through: inverse) }
        }
        context?.announce(slot, of: owner)
    }
}

extension [any PersistentModel] {
    fileprivate var withoutRepetitions: [any PersistentModel] {
        var seen: Set<ObjectIdentifier> = []
        return filter { seen.insert(ObjectIdentifier($0)).inserted }
    }
}
