import Foundation
import MartletStore

/// Values of any type, kept as the data that a transformer makes of them.
enum TransformedValue {
    /// - Throws: ``SwiftDataError/unencodableValue``.
    static func encode(_ value: Any, _ reference: some ValueTransformerReference) throws -> Value {
        var value = value
        if let optional = value as? any AnyOptional {
            guard let wrapped = optional.anyValue else { return .null }
            value = wrapped
        }
        guard let transformer = reference._transformer() else {
            throw SwiftDataError.unencodableValue.because(
                "There is no transformer \(reference._description). Register it with ValueTransformer.setValueTransformer before models are used."
            )
        }
        guard type(of: transformer).allowsReverseTransformation() else {
            throw SwiftDataError.unencodableValue.because(
                "\(reference._description) doesn't allow the reverse transformation: its values couldn't be read back.")
        }
        guard let data = transformer.transformedValue(value) as? Data else {
            throw SwiftDataError.unencodableValue.because(
                "\(reference._description) makes no Data of a \(type(of: value)).")
        }
        return data.storedValue
    }

    /// Nil where the column holds something else.
    static func decode<V>(_ type: V.Type, _ value: Value, _ reference: some ValueTransformerReference) -> V? {
        if value.isNull { return Any?.none as? V }
        guard let data = Data(storedValue: value) else { return nil }
        return reference._transformer()?.reverseTransformedValue(data) as? V
    }
}

extension ModelBacking {
    public func initializeTransformed<V>(_ slot: Int, _ value: V, by type: ValueTransformer.Type) {
        initializeTransformed(slot, value, by: ValueTransformerType(type: type))
    }

    public func initializeTransformed<V>(_ slot: Int, _ value: V, by reference: some ValueTransformerReference) {
        guard !isFetched else { return }
        transform(slot, value, reference)
    }

    public func getTransformed<V>(_ slot: Int, by type: ValueTransformer.Type) -> V {
        getTransformed(slot, by: ValueTransformerType(type: type))
    }

    public func getTransformed<V>(_ slot: Int, by reference: some ValueTransformerReference) -> V {
        if let failed = unencodable[slot], let kept = failed.value as? V { return kept }
        return decoded(slot, TransformedValue.decode(V.self, stored(slot), reference))
    }

    public func setTransformed<V>(
        _ slot: Int, _ value: V, by type: ValueTransformer.Type, of model: any PersistentModel
    ) {
        setTransformed(slot, value, by: ValueTransformerType(type: type), of: model)
    }

    public func setTransformed<V>(
        _ slot: Int, _ value: V, by reference: some ValueTransformerReference, of model: any PersistentModel
    ) {
        transform(slot, value, reference)
    }

    private func transform<V>(_ slot: Int, _ value: V, _ reference: some ValueTransformerReference) {
        attempt(slot, value) { try TransformedValue.encode(value, reference) }
    }
}

extension InitialValues {
    public func initializeTransformed<V>(_ slot: Int, _ value: V, by type: ValueTransformer.Type) {
        add { $0.initializeTransformed($1 + slot, value, by: type) }
    }

    public func initializeTransformed<V>(_ slot: Int, _ value: V, by name: String) {
        add { $0.initializeTransformed($1 + slot, value, by: name) }
    }
}

extension Schema {
    public static func _transformedProperty<M: PersistentModel, V: SendableMetatype>(
        _ name: String, _ keyPath: KeyPath<M, V>, _ attribute: Attribute = Attribute(),
        default value: (@Sendable () -> V)? = nil, by type: ValueTransformer.Type
    ) -> PropertyMetadata {
        _transformedProperty(name, keyPath, attribute, default: value, by: ValueTransformerType(type: type))
    }

    public static func _transformedProperty<M: PersistentModel, V: SendableMetatype>(
        _ name: String, _ keyPath: KeyPath<M, V>, _ attribute: Attribute = Attribute(),
        default value: (@Sendable () -> V)? = nil, by reference: some ValueTransformerReference
    ) -> PropertyMetadata {
        var defaultValue: (@Sendable () -> Value)?
        if let value { defaultValue = { (try? TransformedValue.encode(value(), reference)) ?? .null } }
        let type = AttributeType(
            columnType: Data.columnType, valueType: typeName(V.self), isOptional: V.self is any OptionalType.Type,
            accepts: { TransformedValue.decode(V.self, $0, reference) != nil }, defaultValue: defaultValue,
            coder: .plain)
        return PropertyMetadata(name: name, keyPath: keyPath, kind: .attribute(attribute, type))
    }
}
