import MartletStore

extension Schema {
    /// One stored property of a model, as `@Model` describes it.
    public struct PropertyMetadata: Sendable {
        // Indirect: programs with models know how large a property's description is, and are not always compiled anew.
        indirect enum Kind: Sendable {
            case attribute(Attribute, AttributeType)
            case relationship(Relationship, RelationshipType)
        }

        let name: String
        nonisolated(unsafe) let keyPath: AnyKeyPath  // safe because key paths are immutable
        let kind: Kind
    }

    /// What a column of an attribute looks like.
    struct AttributeType: Sendable {
        var columnType: String
        /// The type's name, without its optionality.
        var valueType: String
        var isOptional: Bool
        /// Whether the attribute's type can represent what a column holds.
        var accepts: @Sendable (Value) -> Bool
        /// A column's value as the attribute has it. Nil where the type can't represent it.
        var load: @Sendable (Value) -> Any?
        /// Absent where the property has no default value.
        var defaultValue: (@Sendable () -> Value)?
        var coder: AttributeCoder
        /// A value for a model that isn't there, where the type has no zero.
        var firstCase: Value?
        /// The same, made of nothing, where the type is kept as JSON.
        var empty: (@Sendable () -> Value?)?
        /// Texts that are ordered as numbers.
        var isDecimal = false
        /// Numbers of which the largest are kept as negative ones.
        var isUnsigned: Bool { ["UInt", "UInt64"].contains(valueType) }
    }

    struct RelationshipType: Sendable {
        var destination: any PersistentModel.Type
        var isToMany: Bool
        var isOptional: Bool
    }
}

extension Schema.PropertyMetadata: CustomReflectable {
    /// With the labels that programs look for: `name`, `keypath`, `defaultValue`, and `metadata`, which is what `@Attribute` or `@Relationship`
    /// was given.
    public var customMirror: Mirror {
        let (metadata, value): (any SchemaProperty, Any?) =
            switch kind {
            case .attribute(let attribute, let type): (attribute, type.defaultValue.flatMap { type.load($0()) })
            case .relationship(let relationship, _): (relationship, nil)
            }
        return Mirror(
            self,
            children: [
                "name": name, "keypath": keyPath, "defaultValue": value as Any,
                "metadata": metadata as (any SchemaProperty)? as Any,
            ], displayStyle: .struct)
    }
}

// What `@Model` calls for each property; the type of the key path decides which.
extension Schema {
    public static func _property<M: PersistentModel, V: StorableAttribute>(
        _ name: String, _ keyPath: KeyPath<M, V>, _ attribute: Attribute = Attribute(),
        default value: (@Sendable () -> V)? = nil
    ) -> PropertyMetadata {
        let type = AttributeType(
            columnType: V.columnType, valueType: typeName(V.self), isOptional: V.isOptional, accepts: { V.accepts($0) },
            load: { V(storedValue: $0) },
            defaultValue: stored(value) { $0.storedValue }, coder: .storable(V.self),
            isDecimal: V.self == Decimal.self || V.self == Decimal?.self)
        return PropertyMetadata(name: name, keyPath: keyPath, kind: .attribute(attribute, type))
    }

    public static func _property<M: PersistentModel, V: RawRepresentable & Codable & SendableMetatype>(
        _ name: String, _ keyPath: KeyPath<M, V>, _ attribute: Attribute = Attribute(),
        default value: (@Sendable () -> V)? = nil
    ) -> PropertyMetadata where V.RawValue: StorableAttribute, V.RawValue: SendableMetatype {
        let load = { @Sendable (stored: Value) in V.RawValue(storedValue: stored).flatMap(V.init(rawValue:)) }
        let type = AttributeType(
            columnType: V.RawValue.columnType, valueType: typeName(V.self), isOptional: false,
            accepts: { load($0) != nil }, load: load, defaultValue: stored(value) { $0.rawValue.storedValue },
            coder: AttributeCoder(V.self, load: load, store: { $0.rawValue.storedValue }),
            firstCase: (V.self as? any CaseIterable.Type).flatMap { firstCase($0) as? V }?.rawValue.storedValue)
        return PropertyMetadata(name: name, keyPath: keyPath, kind: .attribute(attribute, type))
    }

    public static func _property<M: PersistentModel, V: RawRepresentable & Codable & SendableMetatype>(
        _ name: String, _ keyPath: KeyPath<M, V?>, _ attribute: Attribute = Attribute(),
        default value: (@Sendable () -> V?)? = nil
    ) -> PropertyMetadata where V.RawValue: StorableAttribute, V.RawValue: SendableMetatype {
        let load = { @Sendable (stored: Value) in V.RawValue(storedValue: stored).flatMap(V.init(rawValue:)) }
        let type = AttributeType(
            columnType: V.RawValue.columnType, valueType: typeName(V.self), isOptional: true,
            accepts: { $0.isNull || load($0) != nil }, load: load,
            defaultValue: stored(value) { $0?.rawValue.storedValue ?? .null },
            coder: AttributeCoder(V?.self, load: { load($0) }, store: { $0?.rawValue.storedValue ?? .null }))
        return PropertyMetadata(name: name, keyPath: keyPath, kind: .attribute(attribute, type))
    }

    @_disfavoredOverload
    public static func _property<M: PersistentModel, V: Codable & SendableMetatype>(
        _ name: String, _ keyPath: KeyPath<M, V>, _ attribute: Attribute = Attribute(),
        default value: (@Sendable () -> V)? = nil
    ) -> PropertyMetadata {
        let load = { @Sendable (stored: Value) in JSONValue.decode(V.self, stored) }
        let type = AttributeType(
            columnType: "TEXT", valueType: typeName(V.self), isOptional: V.self is any OptionalType.Type,
            accepts: { load($0) != nil }, load: load,
            defaultValue: stored(value) { (try? JSONValue.encode($0)) ?? .null },
            coder: AttributeCoder(V.self, load: load, store: { try JSONValue.encode($0) }),
            empty: { EmptyDecoder.value(V.self).flatMap { try? JSONValue.encode($0) } })
        return PropertyMetadata(name: name, keyPath: keyPath, kind: .attribute(attribute, type))
    }

    public static func _property<M: PersistentModel, D: PersistentModel>(
        _ name: String, _ keyPath: KeyPath<M, D>, _ relationship: Relationship = Relationship()
    ) -> PropertyMetadata {
        Self.relationship(name, keyPath, relationship, .init(destination: D.self, isToMany: false, isOptional: false))
    }

    public static func _property<M: PersistentModel, D: PersistentModel>(
        _ name: String, _ keyPath: KeyPath<M, D?>, _ relationship: Relationship = Relationship(),
        default value: (() -> D?)? = nil
    ) -> PropertyMetadata {
        Self.relationship(name, keyPath, relationship, .init(destination: D.self, isToMany: false, isOptional: true))
    }

    public static func _property<M: PersistentModel, D: PersistentModel>(
        _ name: String, _ keyPath: KeyPath<M, [D]>, _ relationship: Relationship = Relationship(),
        default value: (() -> [D])? = nil
    ) -> PropertyMetadata {
        Self.relationship(name, keyPath, relationship, .init(destination: D.self, isToMany: true, isOptional: false))
    }

    public static func _property<M: PersistentModel, D: PersistentModel>(
        _ name: String, _ keyPath: KeyPath<M, [D]?>, _ relationship: Relationship = Relationship(),
        default value: (() -> [D]?)? = nil
    ) -> PropertyMetadata {
        Self.relationship(name, keyPath, relationship, .init(destination: D.self, isToMany: true, isOptional: true))
    }

    private static func firstCase<C: CaseIterable>(_ type: C.Type) -> Any? { C.allCases.first }

    static func typeName(_ type: Any.Type) -> String {
        String(describing: unwrapped(type))
    }

    private static func stored<V>(
        _ value: (@Sendable () -> V)?, _ store: @escaping @Sendable (V) -> Value
    ) -> (@Sendable () -> Value)? {
        guard let value else { return nil }
        return { store(value()) }
    }

    private static func relationship(
        _ name: String, _ keyPath: AnyKeyPath, _ relationship: Relationship, _ type: RelationshipType
    ) -> PropertyMetadata {
        PropertyMetadata(name: name, keyPath: keyPath, kind: .relationship(relationship, type))
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
