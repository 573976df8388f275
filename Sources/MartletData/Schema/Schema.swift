/// The models of a store.
public final class Schema: Sendable, Hashable, Codable {
    /// The version that was declared, `1.0.0` where none was.
    public let version: Version
    let models: [any PersistentModel.Type]
    /// The entities of a schema that was read, or made of entities. Absent where it was made of models.
    private let given: SchemaDescription?

    /// - Parameter models: their superclasses and what their relationships lead to are added by themselves.
    public init(_ models: [any PersistentModel.Type], version: Version = Version(1, 0, 0)) {
        self.models = models
        self.version = version
        given = nil
    }

    public convenience init() { self.init([]) }

    public convenience init(_ models: any PersistentModel.Type..., version: Version = Version(1, 0, 0)) {
        self.init(models, version: version)
    }

    public convenience init(versionedSchema: any VersionedSchema.Type) {
        self.init(versionedSchema.models, version: versionedSchema.versionIdentifier)
    }

    /// A schema that is described without models: to compare and to write down. No container can be made for it.
    public convenience init(_ entities: Entity..., version: Version = Version(1, 0, 0)) {
        self.init(SchemaDescription(entities.flatMap { $0.all.entities.values }), version)
    }

    init(_ given: SchemaDescription, _ version: Version) {
        self.given = given
        self.version = version
        models = []
    }

    // MARK: Entities

    /// The models, superclasses and what relationships lead to included, by name. Empty where the models contradict
    /// each other; making a container says how.
    public var entities: [Entity] { entitiesByName.values.sorted { $0.name < $1.name } }

    public var entitiesByName: [String: Entity] {
        guard let description else { return [:] }
        return description.entities.compactMapValues { Entity($0.name, in: description) }
    }

    /// What the schema says of a model, or nil where it isn't in it.
    public func entity<T: PersistentModel>(for model: T.Type) -> Entity? {
        entitiesByName[Schema.entityName(for: model)]
    }

    /// - Throws: ``SwiftDataError/invalidSchema`` where the models contradict each other.
    func described() throws -> SchemaDescription { try given ?? SchemaDescription(of: models) }

    /// Nil where the models contradict each other.
    private var description: SchemaDescription? { try? described() }

    /// The name of a model's entity, which is its table's name too: that of the class, without what it is nested in.
    public static func entityName(for model: any PersistentModel.Type) -> String {
        String(describing: model)
    }

    /// - Throws: ``SwiftDataError/unknownSchema`` where the schema names no models.
    func checkModels() throws {
        guard given != nil else { return }
        throw SwiftDataError.unknownSchema.because(
            """
            The schema was read or made of entities, so it has no models to open a store with. Create the container \
            for models.
            """
        )
    }

    // MARK: Equality

    /// Two are equal when they have the same version, and the same models or entities.
    public static func == (a: Schema, b: Schema) -> Bool {
        guard a !== b else { return true }
        guard a.version == b.version else { return false }
        if a.given == nil, b.given == nil, a.modelTypes == b.modelTypes { return true }
        guard let ours = a.description, let theirs = b.description else { return false }
        return ours.entities == theirs.entities
    }

    // Schemas with different models may be equal.
    public func hash(into hasher: inout Hasher) { hasher.combine(version) }

    private var modelTypes: Set<ObjectIdentifier> { Set(models.map { ObjectIdentifier($0) }) }
}

extension Schema: CustomDebugStringConvertible {
    public var debugDescription: String { "Schema \(version): \(entities)" }
}
