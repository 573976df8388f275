/// The values of a model at one time, as exchanged between a context and a store.
///
/// ``DefaultSnapshot`` serves every model. A custom snapshot type is encoded and decoded with the keys of
/// ``DataStoreSnapshotCodingKey``: the identifier, and each property under its name, a relationship as the identifiers
/// of its targets.
public protocol DataStoreSnapshot: Codable, Sendable {
    var persistentIdentifier: PersistentIdentifier { get }

    /// - Parameter relatedBackingDatas: the other models of the same save.
    init(
        from backingData: any BackingData,
        relatedBackingDatas: inout [PersistentIdentifier: any BackingData])

    /// Returns the same values under another identifier.
    ///
    /// - Parameter remappedIdentifiers: replacements for identifiers in relationships.
    func copy(
        persistentIdentifier: PersistentIdentifier, remappedIdentifiers: [PersistentIdentifier: PersistentIdentifier]?
    ) -> Self
}

extension DataStoreSnapshot {
    public func copy(persistentIdentifier: PersistentIdentifier) -> Self {
        copy(persistentIdentifier: persistentIdentifier, remappedIdentifiers: nil)
    }
}

/// The requirements on a snapshot's values.
public typealias DataStoreSnapshotValue = Codable & Sendable

/// The keys under which a snapshot's parts are encoded.
public enum DataStoreSnapshotCodingKey: CodingKey, Hashable, Sendable {
    case persistentIdentifier
    case modeledProperty(String)

    public var stringValue: String {
        switch self {
        case .persistentIdentifier: "persistentIdentifier"
        case .modeledProperty(let name): name
        }
    }

    @available(*, deprecated, renamed: "modeledProperty")
    public static func modelProperty(_ name: String) -> DataStoreSnapshotCodingKey { .modeledProperty(name) }

    public var intValue: Int? { nil }

    public init?(stringValue: String) {
        self = stringValue == "persistentIdentifier" ? .persistentIdentifier : .modeledProperty(stringValue)
    }

    public init?(intValue: Int) { nil }
}
