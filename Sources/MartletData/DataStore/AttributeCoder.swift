import MartletStore

/// Encodes and decodes an attribute in a snapshot, in the same way as the attribute's own type.
struct AttributeCoder: Sendable {
    typealias Key = DataStoreSnapshotCodingKey

    var encode: @Sendable (Value, inout KeyedEncodingContainer<Key>, Key) throws -> Void
    var decode: @Sendable (KeyedDecodingContainer<Key>, Key) throws -> Value

    /// - Parameters:
    ///   - load: returns nil for a value that the type can't represent.
    ///   - store: returns the stored form.
    init<V: Codable & SendableMetatype>(
        _ type: V.Type, load: @escaping @Sendable (Value) -> V?, store: @escaping @Sendable (V) throws -> Value
    ) {
        encode = { value, container, key in
            guard let value = load(value) else {
                throw SwiftDataError.corruptValue.because("\(key.stringValue) does not hold a \(V.self).")
            }
            try container.encode(value, forKey: key)
        }
        decode = { container, key in try store(try container.decode(V.self, forKey: key)) }
    }

    /// For a type that is stored in a column as it is. A type that isn't Codable is encoded as the column's value.
    static func storable<V: StorableAttribute>(_ type: V.Type) -> AttributeCoder {
        func open<C: Codable & SendableMetatype>(_ type: C.Type) -> AttributeCoder {
            AttributeCoder(C.self, load: { V(storedValue: $0) as? C }, store: { ($0 as? V)?.storedValue ?? .null })
        }
        if let codable = type as? any (Codable & SendableMetatype).Type { return open(codable) }
        return plain
    }

    /// Encodes the column's value.
    static var plain: AttributeCoder { AttributeCoder(PlainValue.self, load: PlainValue.init, store: \.value) }
}

/// A column's value, encoded according to its own type.
private struct PlainValue: Codable {
    let value: Value

    init(_ value: Value) { self.value = value }

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            value = .null
        } else if let number = try? container.decode(Int64.self) {
            value = .integer(number)
        } else if let number = try? container.decode(Double.self) {
            value = .real(number)
        } else {
            value = .text(try container.decode(String.self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch value {
        case .integer(let number): try container.encode(number)
        case .real(let number): try container.encode(number)
        case .text(let text): try container.encode(text)
        case .blob(let bytes), .rawText(let bytes): try container.encode(Data(bytes))
        case .null, .reference: try container.encodeNil()
        }
    }
}
