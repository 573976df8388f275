/// Decodes a value of any type from nothing: zeros, empty texts and lists, nil. For models that don't exist, whose
/// getters must return something.
struct EmptyDecoder: Decoder {
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]

    /// Nil for a type that can't be decoded from nothing.
    static func value<T: Decodable>(_ type: T.Type) -> T? { try? decode(type) }

    fileprivate static func decode<T: Decodable>(_ type: T.Type) throws -> T {
        // The values that these types decode aren't made of such parts.
        let known: [any Sendable] = [
            UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)), Decimal(), Data(),
            Date(timeIntervalSince1970: 0),
        ]
        if let value = known.lazy.compactMap({ $0 as? T }).first { return value }
        if type == URL.self, let value = URL(string: ".") as? T { return value }
        do {
            return try T(from: EmptyDecoder())
        } catch {
            func first<C: CaseIterable>(_ type: C.Type) -> Any? { C.allCases.first }
            guard let cases = type as? any CaseIterable.Type, let value = first(cases) as? T else { throw error }
            return value
        }
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(Keyed<Key>())
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { Unkeyed() }
    func singleValueContainer() throws -> any SingleValueDecodingContainer { Single() }

    private struct Keyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let codingPath: [any CodingKey] = []
        let allKeys: [Key] = []

        func contains(_ key: Key) -> Bool { true }
        func decodeNil(forKey key: Key) throws -> Bool { true }
        func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T { try Single().decode(type) }
        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type, forKey key: Key
        ) throws -> KeyedDecodingContainer<Nested> { KeyedDecodingContainer(Keyed<Nested>()) }
        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer { Unkeyed() }
        func superDecoder() throws -> any Decoder { EmptyDecoder() }
        func superDecoder(forKey key: Key) throws -> any Decoder { EmptyDecoder() }
    }

    private struct Unkeyed: UnkeyedDecodingContainer {
        let codingPath: [any CodingKey] = []
        let count: Int? = 0
        let isAtEnd = true
        private(set) var currentIndex = 0

        mutating func decodeNil() throws -> Bool { true }
        mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
            currentIndex += 1
            return try Single().decode(type)
        }
        mutating func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type
        ) throws -> KeyedDecodingContainer<Nested> { KeyedDecodingContainer(Keyed<Nested>()) }
        mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer { Unkeyed() }
        mutating func superDecoder() throws -> any Decoder { EmptyDecoder() }
    }

    private struct Single: SingleValueDecodingContainer {
        let codingPath: [any CodingKey] = []

        func decodeNil() -> Bool { true }
        func decode<T: Decodable>(_ type: T.Type) throws -> T {
            // Numbers, Bool and String decode themselves through a container, not a decoder.
            let known: [any Sendable] = [
                false, "", 0.0, Float(0), 0, Int8(0), Int16(0), Int32(0), Int64(0), UInt(0), UInt8(0), UInt16(0),
                UInt32(0),
                UInt64(0),
            ]
            return try known.lazy.compactMap { $0 as? T }.first ?? EmptyDecoder.decode(type)
        }
    }
}
