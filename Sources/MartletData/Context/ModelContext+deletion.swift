/// What the delete rules did to related models because a model is deleted.
struct DeletionEffects {
    let model: any PersistentModel
    /// The models that are deleted with it.
    var cascaded: [any PersistentModel] = []
    /// The models that no longer refer to it, the end through which they did, and its own end.
    var released: [(model: any PersistentModel, end: Link, ownEnd: Link)] = []
}

extension ModelContext {
    /// Applies the delete rules to related models now. A save does this too, and throws if a rule denies a deletion.
    ///
    /// If related models can't be read, no rule has any effect, and saves fail until ``rollback()``.
    public func processPendingChanges() {
        do {
            try propagateDeletions()
        } catch SwiftDataError.deleteDenied {
            // The deletion stays pending, and the save throws.
        } catch {
            // The program sees related models as they were.
            noteFailedRead(error, of: "What a delete rule changes")
        }
    }

    /// - Throws: ``SwiftDataError/deleteDenied``, and the errors of reading the related models. No rule has had any
    ///   effect then.
    func propagateDeletions() throws {
        var due = (deleted.all + discarded.all).filter { !propagated.contains($0) }
        guard !due.isEmpty else { return }
        var known = Set(due.map { ObjectIdentifier($0) })
        var effects: [DeletionEffects] = []
        var denials: [(link: Link, targets: [any PersistentModel])] = []
        try throwingFailedReads {
            while effects.count < due.count {
                let model = due[effects.count]
                var own = DeletionEffects(model: model)
                for (slot, link) in model._$backing.links {
                    switch link.options.deleteRule {
                    case .cascade:
                        for target in try model._$backing.allTargets(slot, link)
                        where !target.isGoing && known.insert(ObjectIdentifier(target)).inserted {
                            own.cascaded.append(target)
                            due.append(target)
                        }
                    case .deny: denials.append((link, try model._$backing.allTargets(slot, link)))
                    case .nullify where link.inverse != nil: loadEnds(of: model._$backing, slot, link)
                    case .nullify, .noAction: break
                    }
                }
                effects.append(own)
            }
        }
        for (link, targets) in denials
        where targets.contains(where: { !$0.isGoing && !known.contains(ObjectIdentifier($0)) }) {
            throw SwiftDataError.deleteDenied.because(
                "A \(link.source.name) can't be deleted while it has \(link.name).")
        }
        for target in effects.flatMap(\.cascaded) { deleteAny(target) }
        var shrunk = ShrunkLists()
        for var own in effects {
            nullify(&own, &shrunk)
            propagated.add(own.model)
            deletionEffects[ObjectIdentifier(own.model)] = own
        }
        shrunk.write()
    }

    /// Reads what ``nullify(_:_:)`` changes, while an error has no consequences.
    private func loadEnds(of backing: ModelBacking, _ slot: Int, _ link: Link) {
        for target in backing.targets(slot, link) where !target.isGoing {
            guard let inverse = link.inverse, !inverse.isToMany || inverse.hasRowsOfItsOwn,
                let end = target._$backing.layout?.slot(named: inverse.name)
            else { continue }
            _ = target._$backing.targets(end, inverse)
        }
    }

    private func nullify(_ effects: inout DeletionEffects, _ shrunk: inout ShrunkLists) {
        let backing = effects.model._$backing
        for (slot, link) in backing.links where link.options.deleteRule == .nullify {
            guard let inverse = link.inverse else { continue }
            for target in backing.targets(slot, link) where !target.isGoing {
                if inverse.isToMany {
                    shrunk.add(effects.model, of: target, inverse)
                } else {
                    target._$backing.forget(effects.model, through: inverse)
                }
                effects.released.append((target, inverse, link))
            }
        }
    }

    /// What undoes the effects of the delete rules because of a model that is not deleted after all.
    func undoneEffects(of model: any PersistentModel) -> [InsertionStep] {
        guard let effects = deletionEffects.removeValue(forKey: ObjectIdentifier(model)) else { return [] }
        var steps = effects.cascaded.map { InsertionStep.take($0, restores: true) }
        steps.append(.restoreEnds(effects))
        return steps
    }

    /// Lets the models that the delete rules have separated from a model refer to it again.
    func restoreEnds(_ effects: DeletionEffects) {
        let model = effects.model
        for (target, end, ownEnd) in effects.released where !target.isGoing {
            if end.isToMany || target._$backing.refersToNone(through: end) {
                target._$backing.learn(model, through: end)
            } else {
                // It refers to another model by now.
                model._$backing.forget(target, through: ownEnd)
            }
        }
    }

    private func deleteAny(_ model: any PersistentModel) {
        func open<T: PersistentModel>(_ model: T) { delete(model) }
        open(model)
    }
}

/// The to-many ends that deleted models leave. Each is written once, however many of its models are deleted.
private struct ShrunkLists {
    private var lists: [(owner: any PersistentModel, link: Link, gone: Set<ObjectIdentifier>)] = []
    private var places: [[ObjectIdentifier]: Int] = [:]

    mutating func add(_ model: any PersistentModel, of owner: any PersistentModel, _ link: Link) {
        let end = [ObjectIdentifier(owner), ObjectIdentifier(link)]
        let place = places[end] ?? lists.count
        if place == lists.count {
            lists.append((owner, link, []))
            places[end] = place
        }
        lists[place].gone.insert(ObjectIdentifier(model))
    }

    func write() {
        for (owner, link, gone) in lists { owner._$backing.forget(gone, through: link) }
    }
}

extension PersistentModel {
    /// True if the next save deletes the model, or if it was deleted without ever having been saved.
    fileprivate var isGoing: Bool { isDeleted }
}

extension ModelBacking {
    /// The relationships, with their slots.
    var links: [(slot: Int, link: Link)] {
        layout?.slots.enumerated().compactMap { index, slot in slot.link.map { (index, $0) } } ?? []
    }

    fileprivate func refersToNone(through end: Link) -> Bool {
        layout?.slot(named: end.name).map { one($0) == nil } ?? false
    }

    /// The models that a relationship leads to, whether to-one or to-many.
    func targets(_ slot: Int, _ link: Link) -> [any PersistentModel] {
        link.isToMany ? many(slot) : one(slot).map { [$0] } ?? []
    }
}
