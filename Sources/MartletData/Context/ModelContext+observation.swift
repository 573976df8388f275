extension ModelContext {
    /// Notifies observers that a property changed other than through its setter.
    func announce(_ slot: Int, of model: any PersistentModel) {
        let backing = model._$backing
        guard backing.hasRegistrar, let keyPath = backing.layout?.slots[slot].keyPath else { return }
        // What an observer reads, the program has seen.
        let own = ownFailures
        ownFailures = nil
        defer { ownFailures = own }
        func open<M: PersistentModel>(_ model: M) {
            func openValue<V>(_ value: V.Type) {
                guard let keyPath = keyPath as? KeyPath<M, V> else { return }
                backing.observationRegistrar.withMutation(of: model, keyPath: keyPath) {}
            }
            _openExistential(type(of: keyPath).valueType, do: openValue)
        }
        open(model)
    }

    func announceAll(_ model: any PersistentModel) {
        let backing = model._$backing
        guard backing.hasRegistrar, let layout = backing.layout else { return }
        for slot in layout.slots.indices { announce(slot, of: model) }
    }
}
