/// Identifies a model in its store, and stays the same across launches once the model was saved.
///
/// Meaningless in another copy of the data: everywhere else, a model is identified by its unique attributes that are
/// preserved on deletion.
public struct PersistentIdentifier: Hashable, Sendable, Codable, Identifiable, Comparable, CustomStringConvertible {
    enum Key: Hashable, Sendable, Codable {
        case row(Int64)
        case temporary(UUID)
        /// A key of a custom store that is not an integer, as JSON.
        case value(String)
    }

    /// The store. Nil for a model that was never saved.
    public let storeIdentifier: String?
    /// The name of the model's class.
    public let entityName: String
    let key: Key

    public var id: PersistentIdentifier { self }

    /// Creates an identifier for a model in a custom store, or for a row whose `_id` came from elsewhere.
    ///
    /// - Parameters:
    ///   - storeIdentifier: the store's ``DataStore/identifier``, or the one in a model's identifier.
    ///   - primaryKey: the key of the model in the store. Equal keys of one entity are the same model. In a container's
    ///     own store, the integer key of a row.
    /// - Throws: the errors of encoding the key.
    public static func identifier<T: Comparable & CustomStringConvertible & Codable & Hashable>(
        for storeIdentifier: String, entityName: String, primaryKey: T
    ) throws -> PersistentIdentifier {
        if let integer = primaryKey as? any BinaryInteger, let row = Int64(exactly: integer) {
            return PersistentIdentifier(storeIdentifier: storeIdentifier, entityName: entityName, key: .row(row))
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let text = String(decoding: try encoder.encode(primaryKey), as: UTF8.self)
        return PersistentIdentifier(storeIdentifier: storeIdentifier, entityName: entityName, key: .value(text))
    }

    /// True until the model is saved for the first time.
    public var isTemporary: Bool { if case .temporary = key { true } else { false } }
    var row: Int64? { if case .row(let row) = key { row } else { nil } }

    public static func < (a: PersistentIdentifier, b: PersistentIdentifier) -> Bool {
        guard a.entityName == b.entityName else { return a.entityName < b.entityName }
        switch (a.key, b.key) {
        case (.row(let x), .row(let y)): return x < y
        case (.temporary(let x), .temporary(let y)): return x.uuidString < y.uuidString
        case (.value(let x), .value(let y)):
            if let x = Double(x), let y = Double(y), x != y { return x < y }
            return x < y
        default: return a.key.rank < b.key.rank
        }
    }

    public var description: String {
        switch key {
        case .row(let row): "\(entityName)/\(row)"
        case .value(let key): "\(entityName)/\(key)"
        case .temporary(let id): "\(entityName)/t-\(id.uuidString)"
        }
    }
}

extension PersistentIdentifier.Key {
    fileprivate var rank: Int {
        switch self {
        case .row: 0
        case .value: 1
        case .temporary: 2
        }
    }
}
