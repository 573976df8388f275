extension ModelContext: Equatable {
    /// Returns true for the same instance.
    public static func == (a: ModelContext, b: ModelContext) -> Bool { a === b }
}

extension ModelContext: CustomDebugStringConvertible {
    /// The context's stores, and the number of pending changes. Contains no values of models.
    public var debugDescription: String {
        let stores = container.configurations.map(\.name).sorted().joined(separator: ", ")
        return """
            ModelContext(\(stores); inserted: \(inserted.all.count), changed: \(changed.all.count), deleted: \
            \(deleted.all.count))
            """
    }
}

extension ModelConfiguration: CustomDebugStringConvertible {
    /// The name, and where the models are stored.
    public var debugDescription: String {
        let place = isStoredInMemoryOnly ? "in memory" : url.path
        return "ModelConfiguration(\(name), \(place)\(allowsSave ? "" : ", read-only"))"
    }
}
