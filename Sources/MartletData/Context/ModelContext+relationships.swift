import GRDB
import MartletStore

/// Models that were read for a getter, which can't throw.
struct LoadedModels {
    var models: [any PersistentModel] = []
    /// Why the store could not be read, so that any of them may be missing.
    var failure: (any Error)?
    /// Why a model is left out that was read: its class can't represent it.
    var leftOut: (any Error)?

    var isComplete: Bool { failure == nil && leftOut == nil }
}

extension ModelContext {
    /// The object for a row, from memory or from the store. Nil if the row is gone or can't be read.
    func resolve(_ entity: EntityLayout, row: Int64) -> (any PersistentModel)? {
        let found = load(entity, row: row)
        if let failure = found.failure { noteFailedRead(failure, of: entity.name) }
        return found.models.first
    }

    /// Must be called if the store could not be read for a getter, which can't throw. Makes saves fail until a
    /// rollback: the program may have computed anything from what the getter returned instead.
    ///
    /// - Parameter name: the property or the entity.
    func noteFailedRead(_ error: any Error, of name: String) {
        guard ownFailures == nil else {
            ownFailures?.append(error)
            return
        }
        guard refusal == nil else { return }
        refusal = .saveNotAllowed.because(
            """
            \(name) could not be read, and changes may have been computed from what its getter returned instead. Call \
            rollback(), and make the changes again. \(error)
            """, underlying: error, closer: error as? SwiftDataError)
    }

    /// Runs something that calls getters for the context itself. It must not change models.
    ///
    /// - Throws: the error of the first getter that could not read the store. Saves remain possible: the program hasn't
    ///   seen what that getter returned instead.
    func throwingFailedReads<R>(_ body: () throws -> R) throws -> R {
        let (outer, wasRefused) = (ownFailures, refusal != nil)
        ownFailures = []
        defer { ownFailures = outer }
        let result = Result { try body() }
        // What the body threw may be a consequence.
        try checkOwnReads()
        if let refusal, !wasRefused { throw refusal }
        return try result.get()
    }

    /// - Throws: the error of the first getter that could not read the store, in ``throwingFailedReads(_:)``.
    func checkOwnReads() throws {
        if let failure = ownFailures?.first { throw failure }
    }

    private func load(_ entity: EntityLayout, row: Int64) -> LoadedModels {
        if let known = registry.model(entity.table, row) {
            return LoadedModels(models: known._$backing.state == .gone ? [] : [known])
        }
        if let unit = container.unit(of: entity).snapshots {
            return resolve(entity, [row], unit)
        }
        return select(entity, "t0.\(TableLayout.key) = ?", row)
    }

    /// The targets of a relationship: the store's rows, adjusted by unsaved changes.
    func load(_ link: Link, _ slot: Int, of backing: ModelBacking) -> LoadedModels {
        guard let row = backing.row else { return LoadedModels() }
        let destination = link.destination
        switch link.storage {
        case .column:
            guard case .integer(let target) = backing.stored(slot) else { return LoadedModels() }
            return load(destination, row: target)
        case .list:
            guard let unit = container.unit(of: destination).snapshots else { return LoadedModels() }
            return resolve(destination, backing.lists[slot] ?? [], unit)
        case .join(let table, let own, let other):
            return select(
                destination,
                """
                t0.\(TableLayout.key) IN (SELECT \(other.quotedName) FROM \(table.quotedName) WHERE \(own.quotedName) \
                = ?)
                """,
                row)
        case .inverse:
            guard let owner = backing.owner, let inverse = link.inverse, let column = destination.column(of: inverse)
            else { return LoadedModels() }
            /// The model's end, if it was set since the last save. For any other end, the rows decide: somebody else
            /// may have changed it since the object was read.
            func unsavedEnd(_ model: any PersistentModel) -> Int? {
                let backing = model._$backing
                guard backing.state == .inserted || !backing.originals.isEmpty, let layout = backing.layout,
                    layout.isKind(of: destination), let end = layout.slot(named: inverse.name),
                    backing.state == .inserted || backing.originals[end] != nil
                else { return nil }
                return end
            }
            func pointsHere(_ model: any PersistentModel) -> Bool {
                unsavedEnd(model).map { model._$backing.one($0) === owner } ?? false
            }
            var found = select(destination, "t0.\(column.quotedName) = ?", row)
            found.models.removeAll { unsavedEnd($0) != nil && !pointsHere($0) }
            for model in found.models where unsavedEnd(model) == nil { noteOwner(row, of: model, through: inverse) }
            let moved = (inserted.all + changed.all).filter(pointsHere)
            guard !moved.isEmpty else { return found }
            let known = Set(found.models.map { ObjectIdentifier($0) })
            found.models += moved.filter { !known.contains(ObjectIdentifier($0)) }
            return found
        }
    }

    /// Updates a known object whose row has come to refer to another row. Otherwise, removing the object from that
    /// one's list would change nothing.
    private func noteOwner(_ row: Int64, of model: any PersistentModel, through link: Link) {
        let backing = model._$backing
        guard backing.context === self, backing.state == .stored,
            let slot = backing.layout?.slot(named: link.name), backing.stored(slot) != .integer(row)
        else { return }
        backing.values[slot] = .integer(row)
        backing.related[slot] = nil
        announce(slot, of: model)
    }

    /// Reads rows of a table, without those that can't be read.
    private func select(_ entity: EntityLayout, _ condition: String, _ value: Int64) -> LoadedModels {
        let table = entity.table
        let text = SQLText(
            "SELECT \(table.selection) FROM \(table.name.quotedName) t0 WHERE \(condition) ORDER BY 1",
            [.integer(value)])
        guard let unit = container.unit(of: entity).tables else { return LoadedModels() }
        var found = LoadedModels()
        do {
            let rows = try unit.access.readForGetter { db in
                try Self.run(db, unit.statements, text) { statement in
                    try FetchedRow.all(statement, entity) { found.leftOut = $0 }
                }
            }
            found.models = try rows.map { fetched -> any PersistentModel in
                if let known = registry.model(table, fetched.row), !isOfAnotherClass(known, fetched) { return known }
                return try model(fetched, nil)
            }
        } catch {
            found.failure = error
        }
        return found
    }
}
