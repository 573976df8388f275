import MartletStore

/// Values of a model's properties as recorded by one change. Martlet's addition to SwiftData.
///
/// A missing property returns nil, like one that was set to nil: ``contains(_:)`` distinguishes them.
public struct HistoryValues<Model: PersistentModel>: Sendable {
    struct Entry: Sendable {
        nonisolated(unsafe) let keyPath: PartialKeyPath<Model>  // safe because key paths are immutable
        let stored: RecordedValue
        /// The target of a to-one relationship.
        let target: PersistentIdentifier?
    }

    private let entries: [Entry]

    init(_ entries: [Entry]) { self.entries = entries }

    public var isEmpty: Bool { entries.isEmpty }
    /// The properties that have a value here, in the order of their declaration.
    public var keyPaths: [PartialKeyPath<Model>] { entries.map(\.keyPath) }

    /// Returns whether the change recorded the property, even as nil.
    public func contains(_ keyPath: PartialKeyPath<Model>) -> Bool { entry(keyPath) != nil }

    public subscript<V: StorableAttribute>(_ keyPath: KeyPath<Model, V>) -> V? {
        stored(keyPath)?.load(V.init(storedValue:))
    }

    public subscript<V: StorableAttribute>(_ keyPath: KeyPath<Model, V?>) -> V? {
        stored(keyPath)?.load(V.init(storedValue:))
    }

    public subscript<V: RawRepresentable & Codable>(_ keyPath: KeyPath<Model, V>) -> V?
    where V.RawValue: StorableAttribute {
        stored(keyPath)?.load { V.RawValue(storedValue: $0).flatMap(V.init(rawValue:)) }
    }

    public subscript<V: RawRepresentable & Codable>(_ keyPath: KeyPath<Model, V?>) -> V?
    where V.RawValue: StorableAttribute {
        stored(keyPath)?.load { V.RawValue(storedValue: $0).flatMap(V.init(rawValue:)) }
    }

    @_disfavoredOverload
    public subscript<V: Codable>(_ keyPath: KeyPath<Model, V>) -> V? {
        stored(keyPath)?.load { JSONValue.decode(V.self, $0) }
    }

    /// The identifier of a to-one relationship's target.
    public subscript<M: PersistentModel>(_ keyPath: KeyPath<Model, M>) -> PersistentIdentifier? {
        entry(keyPath)?.target
    }

    public subscript<M: PersistentModel>(_ keyPath: KeyPath<Model, M?>) -> PersistentIdentifier? {
        entry(keyPath)?.target
    }

    private func entry(_ keyPath: PartialKeyPath<Model>) -> Entry? { entries.first { $0.keyPath == keyPath } }

    private func stored(_ keyPath: PartialKeyPath<Model>) -> RecordedValue? {
        entry(keyPath).flatMap { $0.stored.value.isNull ? nil : $0.stored }
    }
}

extension DefaultHistoryInsert {
    /// An attribute's saved value. Not in SwiftData.
    public subscript<V: StorableAttribute>(_ keyPath: KeyPath<Model, V>) -> V? { values[keyPath] }
    public subscript<V: StorableAttribute>(_ keyPath: KeyPath<Model, V?>) -> V? { values[keyPath] }
}

extension DefaultHistoryUpdate {
    /// An attribute's new value. Nil if it wasn't changed. Not in SwiftData.
    public subscript<V: StorableAttribute>(_ keyPath: KeyPath<Model, V>) -> V? { values[keyPath] }
    public subscript<V: StorableAttribute>(_ keyPath: KeyPath<Model, V?>) -> V? { values[keyPath] }
}
