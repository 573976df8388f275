import MartletStore

extension ModelContext {
    /// Told before and after each save, with the context as the object.
    public static let willSave = Notification.Name("SwiftData.ModelContext.willSave")
    public static let didSave = Notification.Name("SwiftData.ModelContext.didSave")

    /// Writes everything that is pending as one transaction, which has this context's ``author`` in the history.
    ///
    /// Blocks until it is committed. When it throws, nothing was written, and everything is still pending.
    /// - Throws: ``SwiftDataError`` with `.modelValidationFailure`, `.deleteDenied`, `.modelNotFound`, `.unencodableValue`,
    ///   `.saveNotAllowed`, `.modelOfAnotherContext`; `StoreError` where SQLite refuses (a unique value that another row has, a full disk).
    public func save() throws {
        if let refusal { throw refusal }
        guard hasChanges else { return }
        guard !container.store.configuration.isReadOnly else {
            throw SwiftDataError.saveNotAllowed.because("The configuration has allowsSave: false.")
        }
        NotificationCenter.default.post(name: Self.willSave, object: self)
        try prepareFlush()
        let plan = FlushPlan(self, container.statements)
        try container.store.write(author: author) { db in try plan.run(db) }
        plan.finish()
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

    func prepareFlush() throws {
        if let refusal { throw refusal }
        try processPendingChanges()
    }
}
