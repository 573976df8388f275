import Foundation
import MartletStore

/// Converts values of any type to and from the data that a transformer produces.
enum TransformedValue {
    /// - Throws: ``SwiftDataError/unencodableValue``.
    static func encode(_ value: Any, _ reference: ValueTransformerReference) throws -> Value {
        var value = value
        if let optional = value as? any OptionalType {
            guard let wrapped = optional.anyValue else { return .null }
            value = wrapped
        }
        guard let transformer = reference.transformer() else {
            throw SwiftDataError.unencodableValue.because(
                """
                There is no transformer \(reference.description). Register it with \
                ValueTransformer.setValueTransformer before models are used.
                """)
        }
        guard type(of: transformer).allowsReverseTransformation() else {
            throw SwiftDataError.unencodableValue.because(
                "\(reference.description) doesn't allow the reverse transformation: its values couldn't be read back.")
        }
        guard let data = transformer.transformedValue(value) as? Data else {
            throw SwiftDataError.unencodableValue.because(
                "\(reference.description) does not return Data for a \(type(of: value)).")
        }
        return data.storedValue
    }

    /// Nil if the column contains something else.
    static func decode<V>(_ type: V.Type, _ value: Value, _ reference: ValueTransformerReference) -> V? {
        if value.isNull { return Any?.none as? V }
        guard let data = Data(storedValue: value) else { return nil }
        return reference.transformer()?.reverseTransformedValue(data) as? V
    }
}

extension ModelBacking {
    public func initializeTransformed<V>(_ slot: Int, _ value: V, by reference: ValueTransformerReference) {
        guard !isFetched else { return }
        transform(slot, value, reference)
    }

    public func getTransformed<V>(_ slot: Int, by reference: ValueTransformerReference) -> V {
        kept(slot) ?? decoded(slot, TransformedValue.decode(V.self, stored(slot), reference))
    }

    public func setTransformed<V>(
        _ slot: Int, _ value: V, by reference: ValueTransformerReference, of model: any PersistentModel
    ) {
        transform(slot, value, reference)
    }

    private func transform<V>(_ slot: Int, _ value: V, _ reference: ValueTransformerReference) {
        attempt(slot, value) {
            let stored = try TransformedValue.encode(value, reference)
            guard TransformedValue.decode(V.self, stored, reference) != nil else { throw SwiftDataError.unreadable }
            return stored
        }
    }
}

extension InitialValues {
    public func initializeTransformed<V>(_ slot: Int, _ value: V, by reference: ValueTransformerReference) {
        add { $0.initializeTransformed($1 + slot, value, by: reference) }
    }
}
