/// Determines, without a value of a type, whether the type is encoded by keys, and whether it has a key of a given
/// name.
struct CodingKeyReader: Decoder {
    private struct Answer: Error { var hasKey: Bool }

    private let name: String
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]

    /// Nil if the type isn't encoded by keys.
    static func has(_ name: String, in type: Any.Type) -> Bool? {
        guard let decodable = unwrapped(type) as? any Decodable.Type else { return nil }
        do {
            _ = try decodable.init(from: CodingKeyReader(name: name))
            return nil
        } catch {
            return (error as? Answer)?.hasKey
        }
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        // Keys that accept any name reveal nothing.
        let takesAnyName = Key(stringValue: "\u{1}") != nil
        throw Answer(hasKey: !takesAnyName && Key(stringValue: name) != nil)
    }

    private struct NoKeys: Error {}

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw NoKeys() }
    func singleValueContainer() throws -> any SingleValueDecodingContainer { throw NoKeys() }
}
