/// A schema as its users may look at it.
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

    /// Nil where the models contradict each other.
    init?(_ schema: Schema) {
        guard let layout = try? SchemaLayout(schema) else { return nil }
        var entities: [String: Entity] = [:]
        for entity in layout.entities { entities[entity.name] = Self.entity(entity) }
        self.entities = entities
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
                attribute.value = .init(type: Swift.type(of: keyPath).valueType)
                entity.properties.append(attribute)
                if attribute.isUnique { entity.uniquenessConstraints.append([slot.name]) }
            case .relationship(let link):
                var relationship = link.options
                relationship.name = slot.name
                relationship.keypath = keyPath
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
