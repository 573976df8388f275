/// The public description of a schema, which can be encoded.
final class SchemaDescription: Sendable {
    struct Entity: Sendable {
        var name: String
        var properties: [any SchemaProperty] = []
        var uniquenessConstraints: [[String]] = []
        var indices: [[String]] = []
        var superentityName: String?
        var subentityNames: [String] = []

        var attributes: [Schema.Attribute] { properties.compactMap { $0 as? Schema.Attribute } }
        var relationships: [Schema.Relationship] { properties.compactMap { $0 as? Schema.Relationship } }
    }

    let entities: [String: Entity]

    /// If several entities have the same name, the first one counts.
    init(_ entities: [Entity]) {
        self.entities = Dictionary(entities.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    }

    /// - Throws: ``SwiftDataError/invalidSchema`` if the models contradict each other.
    convenience init(of models: [any PersistentModel.Type]) throws {
        self.init(try SchemaLayout(Schema(models)).entities.map(Self.entity))
    }

    private static func entity(_ layout: EntityLayout) -> Entity {
        var entity = Entity(name: layout.name)
        entity.superentityName = layout.superlayout?.name
        entity.subentityNames = layout.sublayouts.map(\.name).sorted()
        for slot in layout.slots {
            // The hidden end of a relationship has no property.
            guard let keyPath = slot.keyPath else { continue }
            switch slot.kind {
            case .attribute(var attribute, let type):
                attribute.name = slot.name
                attribute.isOptional = type.isOptional
                attribute.valueType = Swift.type(of: keyPath).valueType
                attribute.stored = type.defaultValue.map { StoredDefault(value: $0()) }
                entity.properties.append(attribute)
                if attribute.isUnique { entity.uniquenessConstraints.append([slot.name]) }
            case .relationship(let link):
                var relationship = link.options
                relationship.name = slot.name
                relationship.keypath = keyPath
                relationship.valueType = Swift.type(of: keyPath).valueType
                relationship.destination = link.destination.name
                relationship.isToOneRelationship = !link.isToMany
                relationship.isOptional = link.isOptional
                let inverse = link.inverse.flatMap { inverse in
                    link.destination.slots.first { $0.link === inverse && $0.keyPath != nil }
                }
                relationship.inverseName = inverse?.name
                relationship.inverseKeyPath = inverse?.keyPath
                entity.properties.append(relationship)
            }
        }
        for constraint in layout.type._$constraints {
            switch constraint {
            case .unique(let names): entity.uniquenessConstraints.append(names)
            case .index(let names): entity.indices.append(names)
            }
        }
        return entity
    }
}

extension SchemaDescription.Entity: Equatable {
    static func == (a: Self, b: Self) -> Bool {
        a.name == b.name && a.superentityName == b.superentityName && a.subentityNames == b.subentityNames
            && a.attributes == b.attributes && a.relationships == b.relationships
            && Set(a.uniquenessConstraints) == Set(b.uniquenessConstraints) && Set(a.indices) == Set(b.indices)
    }
}

extension SchemaDescription.Entity: Codable {
    private enum Key: CodingKey {
        case name, properties, uniquenessConstraints, indices, superentityName, subentityNames
    }

    private struct Property: Codable {
        var attribute: Schema.Attribute?
        var relationship: Schema.Relationship?
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        name = try container.decode(String.self, forKey: .name)
        properties = try container.decode([Property].self, forKey: .properties).map { property in
            if let attribute = property.attribute { return attribute }
            if let relationship = property.relationship { return relationship }
            throw DecodingError.dataCorruptedError(
                forKey: .properties, in: container,
                debugDescription: "A property is neither an attribute nor a relationship.")
        }
        uniquenessConstraints = try container.decode([[String]].self, forKey: .uniquenessConstraints)
        indices = try container.decode([[String]].self, forKey: .indices)
        superentityName = try container.decodeIfPresent(String.self, forKey: .superentityName)
        subentityNames = try container.decode([String].self, forKey: .subentityNames)
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(name, forKey: .name)
        let properties = try properties.map { property in
            if let attribute = property as? Schema.Attribute { return Property(attribute: attribute) }
            if let relationship = property as? Schema.Relationship { return Property(relationship: relationship) }
            throw EncodingError.invalidValue(
                property,
                .init(
                    codingPath: encoder.codingPath,
                    debugDescription: "\(name).\(property.name) is neither an attribute nor a relationship."))
        }
        try container.encode(properties, forKey: .properties)
        try container.encode(uniquenessConstraints, forKey: .uniquenessConstraints)
        try container.encode(indices, forKey: .indices)
        try container.encodeIfPresent(superentityName, forKey: .superentityName)
        try container.encode(subentityNames, forKey: .subentityNames)
    }
}
