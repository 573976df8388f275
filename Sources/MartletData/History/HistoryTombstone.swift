import MartletStore

/// The values that remain of a deleted model: the attributes that are preserved on deletion.
public struct HistoryTombstone<Model: PersistentModel>: Sequence, @unchecked Sendable {
    // Safe because key paths are immutable.
    public typealias Element = (keyPath: PartialKeyPath<Model>, value: any Sendable)

    private let values: [(keyPath: PartialKeyPath<Model>, stored: RecordedValue)]

    init(_ values: [(keyPath: PartialKeyPath<Model>, stored: RecordedValue)]) { self.values = values }

    /// Creates a tombstone in a store that keeps its own history.
    public init(preserving values: [PartialKeyPath<Model>: any StorableAttribute] = [:]) {
        let order = Model.schemaMetadata.map(\.keyPath)
        self.values = values.map { (keyPath: $0.key, stored: RecordedValue($0.value.storedValue)) }
            .sorted { a, b in
                (order.firstIndex(of: a.keyPath) ?? .max) < (order.firstIndex(of: b.keyPath) ?? .max)
            }
    }

    /// An attribute's last value. Nil if the attribute isn't preserved.
    public subscript<V: StorableAttribute>(_ keyPath: KeyPath<Model, V>) -> V? {
        stored(keyPath)?.load(V.init(storedValue:))
    }

    /// An attribute's last value. Nil if the attribute isn't preserved, or was nil.
    public subscript<V: StorableAttribute>(_ keyPath: KeyPath<Model, V?>) -> V? {
        stored(keyPath)?.load(V.init(storedValue:))
    }

    public subscript<V: RawRepresentable & Codable>(_ keyPath: KeyPath<Model, V>) -> V?
    where V.RawValue: StorableAttribute {
        stored(keyPath)?.load { V.RawValue(storedValue: $0).flatMap(V.init(rawValue:)) }
    }

    /// An attribute's last value. Nil if the attribute isn't preserved, or was nil.
    public subscript<V: RawRepresentable & Codable>(_ keyPath: KeyPath<Model, V?>) -> V?
    where V.RawValue: StorableAttribute {
        stored(keyPath)?.load { V.RawValue(storedValue: $0).flatMap(V.init(rawValue:)) }
    }

    @_disfavoredOverload
    public subscript<V: Codable>(_ keyPath: KeyPath<Model, V>) -> V? {
        stored(keyPath)?.load { JSONValue.decode(V.self, $0) }
    }

    /// An attribute's last value, for a key path of unknown value type. Nil if the attribute isn't preserved, or was
    /// nil.
    @_disfavoredOverload
    public subscript(_ keyPath: PartialKeyPath<Model>) -> (any Sendable)? {
        guard let stored = stored(keyPath)?.value, !stored.isNull,
            let property = Model.schemaMetadata.first(where: { $0.keyPath == keyPath }),
            case .attribute(_, let type) = property.kind, let value = type.load(stored)
        else { return nil }
        // Safe because the value was just created, and nobody else has it. Without `as Any`, Swift would open the
        // existential in it.
        return unsafeBitCast(value as Any, to: (any Sendable).self)
    }

    private func stored(_ keyPath: PartialKeyPath<Model>) -> RecordedValue? {
        values.first { $0.keyPath == keyPath }?.stored
    }

    /// Iterates over the preserved attributes in the order of their declaration, in their stored form: numbers, texts,
    /// data.
    public func makeIterator() -> AnyIterator<Element> {
        var rest = values.makeIterator()
        return AnyIterator {
            guard let next = rest.next() else { return nil }
            let value: any Sendable =
                switch next.stored.value {
                case .integer(let value): value
                case .real(let value): value
                case .text(let value): value
                case .blob(let bytes): Data(bytes)
                default: String?.none
                }
            return (next.keyPath, value)
        }
    }
}
