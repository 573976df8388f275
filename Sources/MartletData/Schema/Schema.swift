/// The models of a store.
public final class Schema: Sendable, Hashable, Codable {
    /// The declared version, or `1.0.0` if none was declared.
    public let version: Version
    let models: [any PersistentModel.Type]
    /// The entities of a schema that was read from a file or created from entities. Nil if it was created from models.
    private let given: SchemaDescription?

    /// - Parameter models: their superclasses and the targets of their relationships are added automatically.
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

    /// Creates a schema that is described without models, for comparing and encoding only. It can't open a container.
    public convenience init(_ entities: Entity..., version: Version = Version(1, 0, 0)) {
        self.init(SchemaDescription(entities.flatMap { $0.all.entities.values }), version)
    }

    init(_ given: SchemaDescription, _ version: Version) {
        self.given = given
        self.version = version
        models = []
    }

    // MARK: Entities

    /// The models, including superclasses and the targets of relationships, sorted by name. Empty if the models
    /// contradict each other; creating a container reports how.
    public var entities: [Entity] { entitiesByName.values.sorted { $0.name < $1.name } }

    public var entitiesByName: [String: Entity] {
        guard let description else { return [:] }
        return description.entities.compactMapValues { Entity($0.name, in: description) }
    }

    /// The description of a model, or nil if the schema doesn't contain it.
    public func entity<T: PersistentModel>(for model: T.Type) -> Entity? {
        entitiesByName[Schema.entityName(for: model)]
    }

    /// - Throws: ``SwiftDataError/invalidSchema`` if the models contradict each other.
    func described() throws -> SchemaDescription { try given ?? SchemaDescription(of: models) }

    /// Nil if the models contradict each other.
    private var description: SchemaDescription? { try? described() }

    /// The name of a model's entity and of its table: the name of the class, without the types in which it is nested.
    public static func entityName(for model: any PersistentModel.Type) -> String {
        String(describing: model)
    }

    /// - Throws: ``SwiftDataError/unknownSchema`` if the schema has entities, but no models.
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

    /// Returns true for schemas with the same version, and the same models or entities.
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
