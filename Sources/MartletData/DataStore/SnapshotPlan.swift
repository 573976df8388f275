/// Passes a context's pending changes to a custom store.
final class SnapshotPlan: SavePlan {
    let unit: SnapshotUnit
    private var reregistered: [SnapshotRecord] = []

    init(_ context: ModelContext, unit index: Int, _ unit: SnapshotUnit) {
        self.unit = unit
        super.init(context, unit: index)
    }

    /// Collects what would be saved. Writes nothing.
    ///
    /// - Returns: what ``save(_:)`` needs.
    func prepare() throws -> () throws -> SavedRecords {
        let changes = SnapshotChanges(
            inserted: try inserted.map { try data($0, isGoing: false) },
            updated: try changed.map { try data($0, isGoing: false) },
            deleted: try deleted.map { try data($0, isGoing: true) })
        return unit.call { $0.prepareSave(changes, context.editingState) }
    }

    private func data(_ model: any PersistentModel, isGoing: Bool) throws -> any BackingData {
        let backing = model._$backing
        if !isGoing, let layout = backing.layout {
            try checkCounts(backing, layout)
            for (index, slot) in layout.slots.enumerated() {
                try backing.checkEncodable(index, of: layout)
                guard let link = slot.link, !link.isToMany, !link.isOptional else { continue }
                guard backing.one(index).map({ !$0.isDeleted }) == true else {
                    throw SwiftDataError.modelValidationFailure.because(
                        "\(layout.name).\(link.name) must not be empty.")
                }
            }
        }
        let record = context.record(model)
        func open<M: PersistentModel>(_ model: M) -> any BackingData {
            ModelBackingData<M>(backing, prepared: record)
        }
        return open(model)
    }

    /// Returns the token of the transaction, if the store returned one.
    func save(_ prepared: () throws -> SavedRecords) throws -> (any HistoryToken)? {
        let saved = try unit.call { _ in try prepared() }
        for model in inserted {
            let temporary = model.persistentModelID
            rows[ObjectIdentifier(model)] = unit.number(saved.remapped[temporary] ?? temporary)
        }
        reregistered = saved.reregistered
        return saved.token
    }

    override func finish() {
        super.finish()
        context.forgetRelatedRecords()
        for record in reregistered {
            guard let entity = context.container[named: record.identifier.entityName],
                let model = context.registry.model(entity.table, unit.number(record.identifier))
            else { continue }
            // The store's save can't be refused any more; a value of the wrong type leaves the model unchanged.
            try? context.refresh(model, record, unit)
        }
    }
}
