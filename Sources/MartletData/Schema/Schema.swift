/// The models of a store.
public final class Schema: Sendable, Hashable {
    /// The version that was declared, `1.0.0` where none was.
    public let version: Version
    let models: [any PersistentModel.Type]

    /// - Parameter models: their superclasses and what their relationships lead to are added by themselves.
    public init(_ models: [any PersistentModel.Type], version: Version = Version(1, 0, 0)) {
        self.models = models
        self.version = version
    }

    public convenience init(_ models: any PersistentModel.Type..., version: Version = Version(1, 0, 0)) {
        self.init(models, version: version)
    }

    public convenience init(versionedSchema: any VersionedSchema.Type) {
        self.init(versionedSchema.models, version: versionedSchema.versionIdentifier)
    }

    /// Two are equal when they have the same version, and the same models or entities.
    public static func == (a: Schema, b: Schema) -> Bool {
        guard a !== b else { return true }
        guard a.version == b.version else { return false }
        if a.modelTypes == b.modelTypes { return true }
        let entities = a.entitiesByName
        // Models that contradict each other have none.
        return !entities.isEmpty && entities == b.entitiesByName
    }

    // Schemas with different models may be equal.
    public func hash(into hasher: inout Hasher) { hasher.combine(version) }

    private var modelTypes: Set<ObjectIdentifier> { Set(models.map { ObjectIdentifier($0) }) }

    /// The name of a model's entity, which is its table's name too: that of the class, without what it is nested in.
    public static func entityName(for model: any PersistentModel.Type) -> String {
        String(describing: model)
    }
}
