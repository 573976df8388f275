/// The values of a model at one time, as they pass between a context and a store.
///
/// ``DefaultSnapshot`` is one for every model. A type of one's own is encoded and decoded under the keys of
/// ``DataStoreSnapshotCodingKey``: the identifier, and each property under its name, a relationship as the identifiers
/// that it leads to.
public protocol DataStoreSnapshot: Codable, Sendable {
    var persistentIdentifier: PersistentIdentifier { get }

    /// - Parameter relatedBackingDatas: the other models of the same save.
    init(
        from backingData: any BackingData,
        relatedBackingDatas: inout [PersistentIdentifier: any BackingData])

    /// The same values under another identifier.
    ///
    /// - Parameter remappedIdentifiers: what is to take the place of identifiers that relationships lead to.
    func copy(
        persistentIdentifier: PersistentIdentifier, remappedIdentifiers: [PersistentIdentifier: PersistentIdentifier]?
    ) -> Self
}

extension DataStoreSnapshot {
    public func copy(persistentIdentifier: PersistentIdentifier) -> Self {
        copy(persistentIdentifier: persistentIdentifier, remappedIdentifiers: nil)
    }
}

/// What a snapshot's values may be.
public typealias DataStoreSnapshotValue = Codable & Sendable

/// What a snapshot's parts are coded under.
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
