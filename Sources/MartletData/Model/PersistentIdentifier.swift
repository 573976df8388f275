/// Names a model in its store, and stays the same from one launch to the next once the model was saved.
///
/// Means nothing in another copy of the data: what identifies a model everywhere are its unique attributes that are preserved on
/// deletion.
public struct PersistentIdentifier: Hashable, Sendable, Codable, Identifiable, Comparable, CustomStringConvertible {
    enum Key: Hashable, Sendable, Codable {
        case row(Int64)
        case temporary(UUID)
    }

    /// The store. Absent for a model that was never saved.
    public let storeIdentifier: String?
    /// The name of the model's class.
    public let entityName: String
    let key: Key

    public var id: PersistentIdentifier { self }

    var row: Int64? { if case .row(let row) = key { row } else { nil } }

    public static func < (a: PersistentIdentifier, b: PersistentIdentifier) -> Bool {
        guard a.entityName == b.entityName else { return a.entityName < b.entityName }
        switch (a.key, b.key) {
        case (.row(let x), .row(let y)): return x < y
        case (.row, .temporary): return true
        case (.temporary, .row): return false
        case (.temporary(let x), .temporary(let y)): return x.uuidString < y.uuidString
        }
    }

    public var description: String {
        switch key {
        case .row(let row): "\(entityName)/\(row)"
        case .temporary(let id): "\(entityName)/t-\(id.uuidString)"
        }
    }
}
