extension Schema {
    /// The description of one model in a schema.
    public final class Entity: Hashable, Sendable, Codable, CustomDebugStringConvertible {
        /// This entity and all entities that it is related to.
        let all: SchemaDescription
        private let description: SchemaDescription.Entity

        init?(_ name: String, in all: SchemaDescription) {
            guard let description = all.entities[name] else { return nil }
            self.all = all
            self.description = description
        }

        /// Creates an entity that is described without its model, for comparing and encoding only: it can't open a
        /// store.
        public convenience init(_ name: String) { self.init(name, [], []) }

        public convenience init(_ name: String, properties: any SchemaProperty...) { self.init(name, [], properties) }

        public convenience init(_ name: String, subentities: Entity..., properties: any SchemaProperty...) {
            self.init(name, subentities, properties)
        }

        private init(_ name: String, _ subentities: [Entity], _ properties: [any SchemaProperty]) {
            description = SchemaDescription.Entity(
                name: name, properties: properties,
                uniquenessConstraints: properties.filter(\.isUnique).map { [$0.name] },
                subentityNames: subentities.map(\.name).sorted())
            var below = subentities.flatMap { $0.all.entities.values }
            for index in below.indices where below[index].superentityName == nil {
                below[index].superentityName = name
            }
            all = SchemaDescription([description] + below)
        }

        /// Decodes the entity without the entities that it is related to: those are in the schema.
        public init(from decoder: any Decoder) throws {
            description = try SchemaDescription.Entity(from: decoder)
            all = SchemaDescription([description])
        }

        public func encode(to encoder: any Encoder) throws { try description.encode(to: encoder) }

        /// The name of the model's class.
        public var name: String { description.name }
        /// The attributes, including those of superclasses.
        public var attributes: Set<Attribute> { Set(description.attributes) }
        public var attributesByName: [String: Attribute] { Self.byName(description.attributes) }
        /// The relationships, including those of superclasses.
        public var relationships: Set<Relationship> { Set(description.relationships) }
        public var relationshipsByName: [String: Relationship] { Self.byName(description.relationships) }
        /// All stored properties, in the order of their declarations, superclasses first.
        public var properties: [any SchemaProperty] { description.properties }
        public var storedProperties: [any SchemaProperty] { description.properties }
        public var storedPropertiesByName: [String: any SchemaProperty] {
            Dictionary(description.properties.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        }
        /// The properties that superclasses declare.
        public var inheritedProperties: [any SchemaProperty] { superentity?.properties ?? [] }
        public var inheritedPropertiesByName: [String: any SchemaProperty] {
            superentity?.storedPropertiesByName ?? [:]
        }
        /// The lists of attributes that are unique together.
        public var uniquenessConstraints: [[String]] { description.uniquenessConstraints }
        /// The lists of attributes that have an index together.
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
