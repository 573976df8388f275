import MartletStore

extension ModelContext {
    /// Saves all pending changes as one transaction, which has this context's ``author`` in the history.
    ///
    /// Blocks until the transaction is committed. If it throws, nothing was written, and everything is still pending. A
    /// changed model whose row somebody else has deleted meanwhile stays deleted, and the rest is saved; relationships
    /// to such a model are empty afterwards.
    ///
    /// A getter can't throw: if the store can't be read, it returns a default value, an empty relationship, or no
    /// model. From then on, `save()` throws `.saveNotAllowed` until ``rollback()``, even without pending changes, since
    /// any change may have been computed from that; so does a fetch that includes pending changes.
    /// ``SwiftDataError/underlyingError`` says why the store could not be read. A value that its attribute's type can't
    /// represent doesn't count: it is left out for good.
    ///
    /// A save reads what the delete rules and the limits of relationships need. If that fails, it throws the error of
    /// the read, and can be tried again.
    ///
    /// If the container has several stores, each part is a transaction of its own. All parts are written before the
    /// first is committed, so that an error in one store leaves every store unchanged. Only a commit itself may fail on
    /// its own (a full disk, a loss of power between two commits), or the second of two custom stores: each store then
    /// has either its whole part or nothing of it. Committed changes are no longer pending, and the next save continues
    /// with the rest.
    /// - Throws: ``SwiftDataError`` with `.modelValidationFailure`, `.deleteDenied`, `.unencodableValue`,
    ///   `.saveNotAllowed`, `.modelOfAnotherContext`, `.modelNotFound`; the errors of a custom store; `StoreError` if
    ///   SQLite refuses (a unique value that another row has, a full disk), or if the file was moved or replaced.
    public func save() throws {
        if let refusal { throw refusal }
        guard hasChanges else { return }
        let units = container.units.indices.filter(hasChanges)
        for unit in units where container.units[unit].isReadOnly {
            throw SwiftDataError.saveNotAllowed.because("The configuration has allowsSave: false.")
        }
        NotificationCenter.default.post(name: Self.willSave, object: self)
        try prepareFlush()
        try saveParts(units)
        // Only now: until then, the plans keep every model that was saved.
        unloadIfCrowded()
    }

    private func saveParts(_ units: [Int]) throws {
        var saved = Saved()
        // Observers are notified of committed parts, even if the rest failed.
        defer { for plan in saved.plans { plan.changes.saved() } }
        try write(units, &saved)
        notifySaved(saved)
    }

    /// Runs a closure, and saves its changes. If the closure or the save throws, rolls back all pending changes
    /// (see ``rollback()``), and later saves are possible.
    public func transaction(block: () throws -> Void) throws {
        do {
            try block()
            try save()
        } catch {
            rollback()
            throw error
        }
    }

    /// The committed parts of a save.
    struct Saved {
        var plans: [SavePlan] = []
        /// The tokens of the transactions, by store.
        var tokens: [String: any HistoryToken] = [:]
    }

    /// A custom store can't roll back a save: it is called after every table has been written, and before the first
    /// commit.
    private func write(_ units: [Int], _ saved: inout Saved) throws {
        var tables: [FlushPlan] = []
        var stores: [(plan: SnapshotPlan, prepared: () throws -> SavedRecords)] = []
        try throwingFailedReads {
            for index in units {
                switch container.units[index] {
                case .tables(let unit):
                    let plan = FlushPlan(self, unit: index, unit)
                    try plan.check()
                    tables.append(plan)
                case .snapshots(let unit):
                    let plan = SnapshotPlan(self, unit: index, unit)
                    stores.append((plan, try plan.prepare()))
                }
            }
        }
        var committed = Saved()
        defer {
            for plan in committed.plans { plan.finish() }
            saved = committed
        }
        func write(_ rest: ArraySlice<FlushPlan>) throws {
            guard let plan = rest.first else {
                for (plan, prepared) in stores {
                    let token = try plan.save(prepared)
                    committed.plans.append(plan)
                    committed.tokens[plan.unit.identifier] = token
                }
                return
            }
            let token = try plan.unit.access.write(author: author) { db in
                try plan.run(db)
                try write(rest.dropFirst())
            }
            committed.plans.append(plan)
            committed.tokens[plan.unit.identifier] = token.map { DefaultHistoryToken($0) }
        }
        try write(tables[...])
    }

    func prepareFlush() throws {
        if let refusal { throw refusal }
        try propagateDeletions()
        // An observer of what the delete rules changed may have met a failed read.
        if let refusal { throw refusal }
    }
}
