import MartletStore

extension ModelContext {
    /// Told before and after each save, with the context as the object.
    public static let willSave = Notification.Name("SwiftData.ModelContext.willSave")
    public static let didSave = Notification.Name("SwiftData.ModelContext.didSave")

    /// Writes everything that is pending as one transaction, which has this context's ``author`` in the history.
    ///
    /// Blocks until it is committed. When it throws, nothing was written, and everything is still pending.
    ///
    /// Where the container has several stores, each gets its part as a transaction of its own. All parts are written before the
    /// first is committed, so that whatever one store refuses leaves every store as it was. Only a commit itself may fail on its
    /// own (a full disk, a loss of power between two commits): a store has its part whole then, or nothing of it. What was
    /// committed isn't pending any more, and the next save goes on with the rest.
    /// - Throws: ``SwiftDataError`` with `.modelValidationFailure`, `.deleteDenied`, `.modelNotFound`, `.unencodableValue`,
    ///   `.saveNotAllowed`, `.modelOfAnotherContext`; `StoreError` where SQLite refuses (a unique value that another row has, a full disk).
    public func save() throws {
        if let refusal { throw refusal }
        guard hasChanges else { return }
        let units = container.units.indices.filter(hasChanges)
        for unit in units where container.units[unit].store.configuration.isReadOnly {
            throw SwiftDataError.saveNotAllowed.because("The configuration has allowsSave: false.")
        }
        NotificationCenter.default.post(name: Self.willSave, object: self)
        try prepareFlush()
        try write(units.map { FlushPlan(self, unit: $0) })
        NotificationCenter.default.post(name: Self.didSave, object: self)
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

    private func write(_ plans: [FlushPlan]) throws {
        var committed: [FlushPlan] = []
        defer { for plan in committed { plan.finish() } }
        func write(_ rest: ArraySlice<FlushPlan>) throws {
            guard let plan = rest.first else { return }
            try plan.unit.store.write(author: author) { db in
                try plan.run(db)
                try write(rest.dropFirst())
            }
            committed.append(plan)
        }
        try write(plans[...])
    }

    func prepareFlush() throws {
        if let refusal { throw refusal }
        try processPendingChanges()
    }
}
