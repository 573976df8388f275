extension ModelContext {
    /// Applies the delete rules to related models now. A save does this too, and throws if a rule denies a deletion.
    public func processPendingChanges() {
        // A denied deletion stays pending, and the save throws.
        try? propagateDeletions()
    }

    /// - Throws: ``SwiftDataError/deleteDenied``.
    func propagateDeletions() throws {
        var denied: [(model: any PersistentModel, link: Link)] = []
        var waiting = (deleted.all + discarded.all).filter { !propagated.contains($0) }
        while let model = waiting.popLast() {
            propagated.add(model)
            guard let layout = model._$backing.layout else { continue }
            for (slot, link) in layout.slots.enumerated().compactMap({ index, slot in slot.link.map { (index, $0) } }) {
                let targets = model._$backing.targets(slot, link)
                switch link.options.deleteRule {
                case .cascade:
                    for target in targets { deleteAny(target) }
                    waiting += targets.filter { $0.isGoing && !propagated.contains($0) }
                case .deny:
                    if !targets.isEmpty { denied.append((model, link)) }
                case .nullify, .noAction:
                    guard link.options.deleteRule == .nullify, let inverse = link.inverse else { continue }
                    for target in targets where !target.isGoing {
                        target._$backing.forget(model, through: inverse)
                    }
                }
            }
        }
        for (model, link) in denied {
            guard let slot = model._$backing.layout?.slot(named: link.name) else { continue }
            guard model._$backing.targets(slot, link).contains(where: { !$0.isGoing }) else { continue }
            // The next attempt checks again.
            propagated.removeAll()
            throw SwiftDataError.deleteDenied.because(
                "A \(link.source.name) can't be deleted while it has \(link.name).")
        }
    }

    private func deleteAny(_ model: any PersistentModel) {
        func open<T: PersistentModel>(_ model: T) { delete(model) }
        open(model)
    }
}

extension PersistentModel {
    /// True if the next save deletes the model, or if it was deleted without ever having been saved.
    fileprivate var isGoing: Bool { isDeleted }
}

extension ModelBacking {
    /// The models that a relationship leads to, whether to-one or to-many.
    func targets(_ slot: Int, _ link: Link) -> [any PersistentModel] {
        link.isToMany ? many(slot) : one(slot).map { [$0] } ?? []
    }
}
