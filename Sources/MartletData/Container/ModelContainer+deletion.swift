import MartletStore

extension ModelContainer: Equatable {
    /// True for one and the same container.
    public static func == (a: ModelContainer, b: ModelContainer) -> Bool { a === b }

    /// Deletes every model of the schema, as one transaction of each store's history; erases stores of one's own.
    /// Contexts keep what they have in memory.
    ///
    /// A store that fails keeps its models, and that is said on the standard error only; ``erase()`` throws.
    public func deleteAllData() {
        do {
            try deleteModels()
        } catch {
            FileHandle.standardError.write(Data("deleteAllData() failed: \(error)\n".utf8))
        }
    }

    /// Deletes every model of the schema, and the history as far as nobody waits for it: what a cursor hasn't passed,
    /// or isn't published yet, stays until it is. Stores of one's own are erased in their own way. Contexts keep what
    /// they have in memory.
    ///
    /// - Throws: `StoreError`; what a store of one's own throws; ``SwiftDataError/saveNotAllowed`` where the
    ///   configuration allows no saving.
    public func erase() throws {
        guard !units.contains(where: \.isReadOnly) else {
            throw SwiftDataError.saveNotAllowed.because("The configuration has allowsSave: false.")
        }
        let tables = units.compactMap(\.tables)
        for unit in tables { try unit.access.checkDeletesHistory() }
        try deleteModels()
        for unit in tables { try unit.access.deleteHistory(through: nil) }
    }

    func deleteModels() throws {
        for unit in units {
            try unit.deleteAllData()
            unit.changes.saved()
        }
    }
}
