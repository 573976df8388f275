import MartletStore

extension Schema {
    /// The representation of an attribute in a column.
    struct AttributeType: Sendable {
        let columnType: String
        /// The type's name, without its optionality.
        private(set) var valueType: String
        private(set) var isOptional: Bool
        /// Returns whether the attribute's type can represent a column's value.
        private(set) var accepts: @Sendable (Value) -> Bool
        /// Converts a column's value to the attribute's. Nil if the type can't represent it.
        let load: @Sendable (Value) -> Any?
        /// Converts a value to the column's. Throws if it has another type, or no stored form.
        let store: @Sendable (Any) throws -> Value
        let coder: AttributeCoder
        /// Nil if the property has no default value.
        var defaultValue: (@Sendable () -> Value)?
        /// A value for a model that doesn't exist, if the type has no zero.
        private(set) var firstCase: Value?
        /// The same, decoded from nothing, for a type that is stored as JSON.
        private(set) var empty: (@Sendable () -> Value?)?
        /// True for texts that are ordered as numbers.
        private(set) var isDecimal = false
        /// True if only a transformer can read what is stored, whatever the attribute's type is.
        private(set) var isTransformed = false
        /// True for numbers whose largest values are stored as negative ones.
        var isUnsigned: Bool { ["UInt", "UInt64"].contains(valueType) }

        /// - Parameters:
        ///   - load: returns nil for a value that the type can't represent.
        ///   - coder: encodes and decodes the attribute in snapshots.
        init<V: SendableMetatype>(
            _ type: V.Type, columnType: String, coder: AttributeCoder, load: @escaping @Sendable (Value) -> V?,
            store: @escaping @Sendable (V) throws -> Value
        ) {
            self.columnType = columnType
            self.coder = coder
            valueType = Schema.typeName(type)
            isOptional = type is any OptionalType.Type
            accepts = { load($0) != nil }
            self.load = { load($0) }
            self.store = { value in
                guard let value = value as? V else {
                    throw SwiftDataError.unencodableValue.because(
                        "The value has type \(Swift.type(of: value)), not \(V.self).")
                }
                return try store(value)
            }
        }

        /// Adds a default value that is computed anew for each model.
        func with<V>(_ value: (@Sendable () -> V)?) -> AttributeType {
            guard let value else { return self }
            var copy = self
            let store = store
            copy.defaultValue = { (try? store(value())) ?? .null }
            return copy
        }
    }
}

// MARK: Kinds of types

extension Schema.AttributeType {
    static func storable<V: StorableAttribute>(_ type: V.Type) -> Self {
        var made = Self(
            type, columnType: V.columnType, coder: .storable(type), load: { V(storedValue: $0) },
            store: { $0.storedValue })
        made.accepts = { V.accepts($0) }
        made.isDecimal = type == Decimal.self || type == Decimal?.self
        return made
    }

    static func raw<V: RawRepresentable & Codable & SendableMetatype>(_ type: V.Type) -> Self
    where V.RawValue: StorableAttribute {
        raw(type, columnType: V.RawValue.columnType, load: V.RawValue.init(storedValue:), store: { $0.storedValue })
    }

    static func optionalRaw<V: RawRepresentable & Codable & SendableMetatype>(_ type: V.Type) -> Self
    where V.RawValue: StorableAttribute {
        optionalRaw(
            type, columnType: V.RawValue.columnType, load: V.RawValue.init(storedValue:), store: { $0.storedValue })
    }

    private static func raw<V: RawRepresentable & Codable & SendableMetatype>(
        _ type: V.Type, columnType: String, load: @escaping @Sendable (Value) -> V.RawValue?,
        store: @escaping @Sendable (V.RawValue) -> Value
    ) -> Self {
        func firstCase<C: CaseIterable>(_ type: C.Type) -> Any? { C.allCases.first }
        var made = codable(
            type, columnType: columnType, load: { load($0).flatMap(V.init(rawValue:)) }, store: { store($0.rawValue) })
        let first = (type as? any CaseIterable.Type).flatMap { firstCase($0) as? V }
        made.firstCase = first.map { store($0.rawValue) }
        return made
    }

    private static func optionalRaw<V: RawRepresentable & Codable & SendableMetatype>(
        _ type: V.Type, columnType: String, load: @escaping @Sendable (Value) -> V.RawValue?,
        store: @escaping @Sendable (V.RawValue) -> Value
    ) -> Self {
        codable(
            V?.self, columnType: columnType,
            load: { stored -> V?? in
                if stored.isNull { return .some(nil) }
                return load(stored).flatMap(V.init(rawValue:)).map { .some($0) }
            }, store: { $0.map { store($0.rawValue) } ?? .null })
    }

    /// A type that is stored as JSON.
    static func json<V: Codable & SendableMetatype>(_ type: V.Type) -> Self {
        var made = codable(
            type, columnType: "TEXT", load: { JSONValue.decode(V.self, $0) }, store: { try JSONValue.encode($0) })
        made.empty = { EmptyDecoder.value(V.self).flatMap { try? JSONValue.encode($0) } }
        return made
    }

    /// A type whose values are stored as the data that a transformer produces; the values may have any type.
    static func transformed(_ type: Any.Type, by reference: ValueTransformerReference) -> Self {
        var made = Self(
            Any.self, columnType: Data.columnType, coder: .plain,
            load: { value in
                func open<V>(_ type: V.Type) -> Any? { TransformedValue.decode(type, value, reference) }
                return _openExistential(type, do: open)
            }, store: { try TransformedValue.encode($0, reference) })
        made.isTransformed = true
        made.valueType = Schema.typeName(type)
        made.isOptional = type is any OptionalType.Type
        return made
    }

    private static func codable<V: Codable & SendableMetatype>(
        _ type: V.Type, columnType: String, load: @escaping @Sendable (Value) -> V?,
        store: @escaping @Sendable (V) throws -> Value
    ) -> Self {
        Self(
            type, columnType: columnType, coder: AttributeCoder(type, load: load, store: store), load: load,
            store: store)
    }

    /// The representation of a type that is only known at run time, the same as `@Model`'s accessors use. Nil if it
    /// can't be stored.
    static func of(_ type: Any.Type) -> Self? {
        if let type = type as? any StorableAttribute.Type {
            func open<V: StorableAttribute>(_ type: V.Type) -> Self { storable(type) }
            return open(type)
        }
        func open<V: RawRepresentable & Codable & SendableMetatype>(_ type: V.Type, isOptional: Bool) -> Self? {
            func open<R: StorableAttribute>(_ raw: R.Type) -> Self {
                let load = { @Sendable (value: Value) in R(storedValue: value) as? V.RawValue }
                let store = { @Sendable (value: V.RawValue) in (value as? R)?.storedValue ?? .null }
                return isOptional
                    ? optionalRaw(V.self, columnType: R.columnType, load: load, store: store)
                    : Self.raw(V.self, columnType: R.columnType, load: load, store: store)
            }
            return (V.RawValue.self as? any StorableAttribute.Type).map { open($0) }
        }
        let isOptional = type is any OptionalType.Type
        if let raw = unwrapped(type) as? any (RawRepresentable & Codable & SendableMetatype).Type,
            let known = open(raw, isOptional: isOptional)
        {
            return known
        }
        func json<V: Codable & SendableMetatype>(_ type: V.Type) -> Self { .json(type) }
        return (type as? any (Codable & SendableMetatype).Type).map { json($0) }
    }
}
