extension Schema {
    /// What a schema says of one model.
    public final class Entity: Hashable, Sendable, CustomDebugStringConvertible {
        private let all: SchemaDescription
        private let description: SchemaDescription.Entity

        init?(_ name: String, in all: SchemaDescription) {
            guard let description = all.entities[name] else { return nil }
            self.all = all
            self.description = description
        }

        /// The name of the model's class.
        public var name: String { description.name }
        /// The attributes, those of superclasses included.
        public var attributes: Set<Attribute> { Set(description.attributes) }
        public var attributesByName: [String: Attribute] { Self.byName(description.attributes) }
        /// The relationships, those of superclasses included.
        public var relationships: Set<Relationship> { Set(description.relationships) }
        public var relationshipsByName: [String: Relationship] { Self.byName(description.relationships) }
        /// Everything that is stored, in the order of the declarations, superclasses first.
        public var properties: [any SchemaProperty] { description.properties }
        public var storedProperties: [any SchemaProperty] { description.properties }
        public var storedPropertiesByName: [String: any SchemaProperty] {
            Dictionary(uniqueKeysWithValues: description.properties.map { ($0.name, $0) })
        }
        /// What superclasses declare.
        public var inheritedProperties: [any SchemaProperty] { superentity?.properties ?? [] }
        public var inheritedPropertiesByName: [String: any SchemaProperty] {
            superentity?.storedPropertiesByName ?? [:]
        }
        /// The attributes that are unique together.
        public var uniquenessConstraints: [[String]] { description.uniquenessConstraints }
        /// The attributes that have an index together.
        public var indices: [[String]] { description.indices }
        public var superentityName: String? { description.superentityName }
        public var superentity: Entity? { description.superentityName.flatMap { Entity($0, in: all) } }
        /// The direct subclasses.
        public var subentities: Set<Entity> { Set(description.subentityNames.compactMap { Entity($0, in: all) }) }

        public var debugDescription: String {
            "\(name)(\(description.properties.map(\.name).joined(separator: ", ")))"
        }

        public static func == (a: Entity, b: Entity) -> Bool { a.description == b.description }
        public func hash(into hasher: inout Hasher) { hasher.combine(name) }

        private static func byName<P: SchemaProperty>(_ properties: [P]) -> [String: P] {
            Dictionary(properties.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        }
    }
}

extension Schema: CustomDebugStringConvertible {
    /// The models, superclasses and what relationships lead to included, by name. Empty where the models contradict each other;
    /// making a container says how.
    public var entities: [Entity] { entitiesByName.values.sorted { $0.name < $1.name } }

    public var entitiesByName: [String: Entity] {
        guard let description = SchemaDescription(self) else { return [:] }
        return description.entities.compactMapValues { Entity($0.name, in: description) }
    }

    /// The version of what `encodingVersion` would be written as.
    public static let schemaEncodingVersion = Version(1, 0, 0)
    public var encodingVersion: Version { Self.schemaEncodingVersion }

    /// What the schema says of a model, or nil where it isn't in it.
    public func entity<T: PersistentModel>(for model: T.Type) -> Entity? {
        entitiesByName[Schema.entityName(for: model)]
    }

    public var debugDescription: String { "Schema \(version): \(entities)" }
}
