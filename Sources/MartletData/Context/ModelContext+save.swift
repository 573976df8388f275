import MartletStore

extension ModelContext {
    /// Writes everything that is pending as one transaction, which has this context's ``author`` in the history.
    ///
    /// Blocks until it is committed. When it throws, nothing was written, and everything is still pending. A changed
    /// model whose row somebody else has deleted meanwhile stays deleted, and the rest is saved; what leads to such a
    /// model leads nowhere afterwards.
    ///
    /// Where the container has several stores, each gets its part as a transaction of its own. All parts are written
    /// before the first is committed, so that whatever one store refuses leaves every store as it was. Only a commit
    /// itself may fail on its own (a full disk, a loss of power between two commits), or the second of two stores of
    /// one's own: each store has its part whole then, or nothing of it. What was committed isn't pending any more, and
    /// the next save goes on with the rest.
    /// - Throws: ``SwiftDataError`` with `.modelValidationFailure`, `.deleteDenied`, `.unencodableValue`,
    ///   `.saveNotAllowed`, `.modelOfAnotherContext`; what a store of one's own throws; `StoreError` where SQLite
    ///   refuses (a unique value that another row has, a full disk).
    public func save() throws {
        if let refusal { throw refusal }
        guard hasChanges else { return }
        let units = container.units.indices.filter(hasChanges)
        for unit in units where container.units[unit].isReadOnly {
            throw SwiftDataError.saveNotAllowed.because("The configuration has allowsSave: false.")
        }
        NotificationCenter.default.post(name: Self.willSave, object: self)
        try prepareFlush()
        var saved = Saved()
        // What was committed is told of, whether the rest was or not.
        defer { for plan in saved.plans { plan.changes.saved() } }
        try write(units, &saved)
        notifySaved(saved)
    }

    /// Runs a closure, and saves what it did. Rolls everything back that is pending where it throws.
    public func transaction(block: () throws -> Void) throws {
        do {
            try block()
            try save()
        } catch {
            rollback()
            throw error
        }
    }

    /// What was committed.
    struct Saved {
        var plans: [SavePlan] = []
        /// Of the transactions, by store.
        var tokens: [String: any HistoryToken] = [:]
    }

    /// Stores of one's own can't be asked to take back what they saved: they come when every table is written, and
    /// before the first commit.
    private func write(_ units: [Int], _ saved: inout Saved) throws {
        var tables: [FlushPlan] = []
        var stores: [(plan: SnapshotPlan, changes: SnapshotChanges)] = []
        for index in units {
            switch container.units[index] {
            case .tables(let unit):
                let plan = FlushPlan(self, unit: index, unit)
                try plan.check()
                tables.append(plan)
            case .snapshots(let unit):
                let plan = SnapshotPlan(self, unit: index, unit)
                stores.append((plan, try plan.changes()))
            }
        }
        var committed = Saved()
        defer {
            for plan in committed.plans { plan.finish() }
            saved = committed
        }
        func write(_ rest: ArraySlice<FlushPlan>) throws {
            guard let plan = rest.first else {
                for (plan, changes) in stores {
                    let token = try plan.save(changes)
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
    }
}
