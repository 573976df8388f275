import MartletStore

extension ModelContainer: Equatable {
    /// Returns true for the same instance.
    public static func == (a: ModelContainer, b: ModelContainer) -> Bool { a === b }

    /// Deletes every model of the schema, in one history transaction per store; erases custom stores. Contexts keep the
    /// models that they have in memory.
    ///
    /// If a store fails, it keeps its models, and the error is only written to standard error; ``erase()`` throws
    /// instead.
    public func deleteAllData() {
        do {
            try deleteModels()
        } catch {
            // Where that fails, nobody could be told: `write(_:)` would end the program.
            try? FileHandle.standardError.write(contentsOf: Data("deleteAllData() failed: \(error)\n".utf8))
        }
    }

    /// Deletes every model of the schema, and the history that nobody still needs: transactions that a cursor hasn't
    /// passed, or that aren't published yet, stay until then. Custom stores are erased in their own way. Contexts keep
    /// the models that they have in memory.
    ///
    /// - Throws: `StoreError`; the errors of a custom store; ``SwiftDataError/saveNotAllowed`` if the configuration
    ///   doesn't allow saving.
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
