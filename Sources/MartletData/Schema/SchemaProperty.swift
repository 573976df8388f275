/// A declaration of a model: an attribute or a relationship.
public protocol SchemaProperty: Codable, Hashable, Sendable {
    /// The property's name. Empty in the arguments of `@Attribute` and `@Relationship`, until it belongs to an entity.
    var name: String { get set }
    /// The name in the previous version, which is ``name`` if it hasn't changed.
    var originalName: String { get set }
    /// The property's type, including its optionality. Void until it belongs to an entity.
    var valueType: any Any.Type { get }
    var isAttribute: Bool { get }
    var isRelationship: Bool { get }
    var isTransient: Bool { get }
    var isOptional: Bool { get }
    var isUnique: Bool { get }
}

extension SchemaProperty {
    /// False: a transient property isn't part of a schema.
    public var isTransient: Bool { false }
}

extension Schema.Attribute: SchemaProperty {
    public var originalName: String {
        get { formerName ?? name }
        set { formerName = newValue }
    }
    public var isAttribute: Bool { true }
    public var isRelationship: Bool { false }
    public var isTransformable: Bool { options.contains(where: \.isTransformable) }
    public var isCodable: Bool { options.contains(.codable) }
}

extension Schema.Relationship: SchemaProperty, CustomDebugStringConvertible {
    public var originalName: String {
        get { formerName ?? name }
        set { formerName = newValue }
    }
    public var debugDescription: String { "\(name): \(isToOneRelationship ? destination : "[\(destination)]")" }
    public var isAttribute: Bool { false }
    public var isRelationship: Bool { true }
    public var isUnique: Bool { false }

    public static func == (a: Schema.Relationship, b: Schema.Relationship) -> Bool {
        a.name == b.name && a.destination == b.destination && a.isToOneRelationship == b.isToOneRelationship
            && a.isOptional == b.isOptional && a.deleteRule == b.deleteRule && a.inverseName == b.inverseName
            && a.minimumModelCount == b.minimumModelCount && a.maximumModelCount == b.maximumModelCount
            && a.formerName == b.formerName && a.hashModifier == b.hashModifier && a.options == b.options
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(name)
        hasher.combine(destination)
    }
}
