import MartletStore

extension Schema {
    /// One stored property of a model, as `@Model` describes it.
    public struct PropertyMetadata: Sendable {
        // Indirect: programs with models know how large a property's description is, and are not always compiled anew.
        indirect enum Kind: Sendable {
            case attribute(Attribute, AttributeType)
            case relationship(Relationship, RelationshipType)
            /// Can't be stored, and why. Making a container says so.
            case unknown(String)
        }

        let name: String
        nonisolated(unsafe) let keyPath: AnyKeyPath  // safe because key paths are immutable
        let kind: Kind

        init(name: String, keyPath: AnyKeyPath, kind: Kind) {
            self.name = name
            self.keyPath = keyPath
            self.kind = kind
        }

        /// A property of a model that wasn't written by `@Model`.
        ///
        /// - Parameters:
        ///   - keypath: leads from the model to the property; its value's type says how it is kept. A type that can't
        ///     be kept is refused where
        ///     a container is made.
        ///   - defaultValue: what a model has whose row lacks the property.
        ///   - metadata: a ``Schema/Attribute`` or a ``Schema/Relationship``.
        public init(
            name: String, keypath: AnyKeyPath, defaultValue: Any? = nil, metadata: (any SchemaProperty)? = nil
        ) {
            self.init(
                name: name, keyPath: keypath,
                kind: Kind(of: Swift.type(of: keypath).valueType, default: defaultValue, metadata))
        }
    }

    struct RelationshipType: Sendable {
        var destination: any PersistentModel.Type
        var isToMany: Bool
        var isOptional: Bool

        /// Nil for a type that is no model, nor a list of them.
        static func of(_ type: Any.Type) -> RelationshipType? {
            let isOptional = type is any OptionalType.Type
            if let model = unwrapped(type) as? any PersistentModel.Type {
                return RelationshipType(destination: model, isToMany: false, isOptional: isOptional)
            }
            func element<C: RelationshipCollection>(_ type: C.Type) -> any PersistentModel.Type {
                C.PersistentElement.self
            }
            guard let list = unwrapped(type) as? any RelationshipCollection.Type else { return nil }
            return RelationshipType(destination: element(list), isToMany: true, isOptional: isOptional)
        }
    }
}

/// What a relationship to many models may be: an array of them.
public protocol RelationshipCollection {
    associatedtype PersistentElement: PersistentModel
}

extension Array: RelationshipCollection where Element: PersistentModel {
    public typealias PersistentElement = Element
}

extension Optional: RelationshipCollection where Wrapped: RelationshipCollection {
    public typealias PersistentElement = Wrapped.PersistentElement
}

extension Schema.PropertyMetadata: CustomReflectable {
    /// With the labels that programs look for: `name`, `keypath`, `defaultValue`, and `metadata`, which is what
    /// `@Attribute` or `@Relationship` was given.
    public var customMirror: Mirror {
        let (metadata, value): (any SchemaProperty, Any?) =
            switch kind {
            case .attribute(let attribute, let type): (attribute, type.defaultValue.flatMap { type.load($0()) })
            case .relationship(let relationship, _): (relationship, nil)
            case .unknown: (Schema.Attribute(), nil)
            }
        return Mirror(
            self,
            children: [
                "name": name, "keypath": keyPath, "defaultValue": value as Any,
                "metadata": metadata as (any SchemaProperty)? as Any,
            ], displayStyle: .struct)
    }
}

extension Schema.PropertyMetadata.Kind {
    init(of type: Any.Type, default value: Any?, _ metadata: (any SchemaProperty)?) {
        if let relationship = Schema.RelationshipType.of(type) {
            self = .relationship(metadata.map { Schema.Relationship(of: $0) } ?? .init(), relationship)
            return
        }
        let attribute = metadata.map { Schema.Attribute(of: $0) } ?? .init()
        let known = attribute.transformer.map { .transformed(type, by: $0) } ?? Schema.AttributeType.of(type)
        guard let known else {
            self = .unknown("\(type) can't be stored: it isn't Codable, and has no transformer.")
            return
        }
        guard let value = value ?? attribute.defaultValue else {
            self = .attribute(attribute, known)
            return
        }
        do {
            let stored = try known.store(value)
            var complete = known
            complete.defaultValue = { stored }
            self = .attribute(attribute, complete)
        } catch {
            self = .unknown("Its default value can't be stored: \((error as? SwiftDataError)?.message ?? "\(error)")")
        }
    }
}

// The type of a property decides what it is, and not which of the two markers it has. Of the other one, what both say
// counts.
extension Schema.Attribute {
    fileprivate init(of metadata: any SchemaProperty) {
        self = metadata as? Self ?? Self()
        guard let other = metadata as? Schema.Relationship else { return }
        formerName = other.formerName
        hashModifier = other.hashModifier
        if other.options.contains(.unique) { options = [.unique] }
    }
}

extension Schema.Relationship {
    fileprivate init(of metadata: any SchemaProperty) {
        self = metadata as? Self ?? Self()
        guard let other = metadata as? Schema.Attribute else { return }
        formerName = other.formerName
        hashModifier = other.hashModifier
    }
}

// What `@Model` calls for each property; the type of the key path decides which.
extension Schema {
    public static func _property<M: PersistentModel, V: StorableAttribute>(
        _ name: String, _ keyPath: KeyPath<M, V>, _ metadata: any SchemaProperty = Attribute(),
        default value: (@Sendable () -> V)? = nil
    ) -> PropertyMetadata { attributeProperty(name, keyPath, metadata, .storable(V.self).with(value)) }

    public static func _property<M: PersistentModel, V: RawRepresentable & Codable & SendableMetatype>(
        _ name: String, _ keyPath: KeyPath<M, V>, _ metadata: any SchemaProperty = Attribute(),
        default value: (@Sendable () -> V)? = nil
    ) -> PropertyMetadata where V.RawValue: StorableAttribute, V.RawValue: SendableMetatype {
        attributeProperty(name, keyPath, metadata, .raw(V.self).with(value))
    }

    public static func _property<M: PersistentModel, V: RawRepresentable & Codable & SendableMetatype>(
        _ name: String, _ keyPath: KeyPath<M, V?>, _ metadata: any SchemaProperty = Attribute(),
        default value: (@Sendable () -> V?)? = nil
    ) -> PropertyMetadata where V.RawValue: StorableAttribute, V.RawValue: SendableMetatype {
        attributeProperty(name, keyPath, metadata, .optionalRaw(V.self).with(value))
    }

    @_disfavoredOverload
    public static func _property<M: PersistentModel, V: Codable & SendableMetatype>(
        _ name: String, _ keyPath: KeyPath<M, V>, _ metadata: any SchemaProperty = Attribute(),
        default value: (@Sendable () -> V)? = nil
    ) -> PropertyMetadata { attributeProperty(name, keyPath, metadata, .json(V.self).with(value)) }

    public static func _transformedProperty<M: PersistentModel, V: SendableMetatype>(
        _ name: String, _ keyPath: KeyPath<M, V>, _ metadata: any SchemaProperty = Attribute(),
        default value: (@Sendable () -> V)? = nil, by reference: ValueTransformerReference
    ) -> PropertyMetadata {
        attributeProperty(name, keyPath, metadata, .transformed(V.self, by: reference).with(value))
    }

    private static func attributeProperty(
        _ name: String, _ keyPath: AnyKeyPath, _ metadata: any SchemaProperty, _ type: AttributeType
    ) -> PropertyMetadata {
        PropertyMetadata(name: name, keyPath: keyPath, kind: .attribute(Attribute(of: metadata), type))
    }

    public static func _property<M: PersistentModel, D: PersistentModel>(
        _ name: String, _ keyPath: KeyPath<M, D>, _ metadata: any SchemaProperty = Relationship(),
        default value: (() -> D)? = nil
    ) -> PropertyMetadata {
        Self.relationship(name, keyPath, metadata, .init(destination: D.self, isToMany: false, isOptional: false))
    }

    public static func _property<M: PersistentModel, D: PersistentModel>(
        _ name: String, _ keyPath: KeyPath<M, D?>, _ metadata: any SchemaProperty = Relationship(),
        default value: (() -> D?)? = nil
    ) -> PropertyMetadata {
        Self.relationship(name, keyPath, metadata, .init(destination: D.self, isToMany: false, isOptional: true))
    }

    public static func _property<M: PersistentModel, D: PersistentModel>(
        _ name: String, _ keyPath: KeyPath<M, [D]>, _ metadata: any SchemaProperty = Relationship(),
        default value: (() -> [D])? = nil
    ) -> PropertyMetadata {
        Self.relationship(name, keyPath, metadata, .init(destination: D.self, isToMany: true, isOptional: false))
    }

    public static func _property<M: PersistentModel, D: PersistentModel>(
        _ name: String, _ keyPath: KeyPath<M, [D]?>, _ metadata: any SchemaProperty = Relationship(),
        default value: (() -> [D]?)? = nil
    ) -> PropertyMetadata {
        Self.relationship(name, keyPath, metadata, .init(destination: D.self, isToMany: true, isOptional: true))
    }

    static func typeName(_ type: Any.Type) -> String {
        String(describing: unwrapped(type))
    }

    private static func relationship(
        _ name: String, _ keyPath: AnyKeyPath, _ metadata: any SchemaProperty, _ type: RelationshipType
    ) -> PropertyMetadata {
        PropertyMetadata(name: name, keyPath: keyPath, kind: .relationship(Relationship(of: metadata), type))
    }
}

/// The type without its optionality.
func unwrapped(_ type: Any.Type) -> Any.Type { (type as? any OptionalType.Type)?.wrapped ?? type }

protocol OptionalType {
    static var wrapped: Any.Type { get }
}

extension Optional: OptionalType {
    static var wrapped: Any.Type { Wrapped.self }
}
