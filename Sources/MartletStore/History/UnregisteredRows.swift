import Foundation
import GRDB

/// What rows with an assigned ID were called at each change since the last registration. It says before the registrar does
/// what that will say.
///
/// Reads the unregistered part of the log when it is first asked. Confined to its connection.
final class UnregisteredRows {
    enum Name {
        /// The ID that a row gets which was inserted since.
        case assigned(StableID)
        /// The one that is kept for this integer key.
        case registered(Int64)
    }

    private struct Key: Hashable {
        var entity: Int64
        var row: Int64
    }

    private let db: Database
    private let hidden: [Int64]
    private let end: Int64
    /// What the row under a key is called from each change on. Nil: nothing is under the key.
    private var names: [Key: [(from: Int64, name: Name?)]]?

    init(_ db: Database, _ catalog: Catalog, through end: Int64) {
        self.db = db
        self.end = end
        hidden = catalog.entities.filter { $0.identity == .hidden }.map(\.id)
    }

    /// What the row was called at this change. Nil where nothing has happened to it since the last registration.
    func name(_ entity: Int64, _ row: Int64, at change: Int64) throws -> Name? {
        if names == nil { names = try read() }
        return names?[Key(entity: entity, row: row)]?.last { $0.from <= change }?.name
    }

    private func read() throws -> [Key: [(from: Int64, name: Name?)]] {
        var names: [Key: [(from: Int64, name: Name?)]] = [:]
        let registered = try Meta.integer(db, MetaKey.registered) ?? 0
        guard !hidden.isEmpty, end > registered else { return names }
        let namespace = try Meta.text(db, MetaKey.hiddenNamespace).flatMap(UUID.init(uuidString:)) ?? UUID()
        let known = StatementCache()
        func current(_ key: Key) throws -> Name? {
            if let last = names[key]?.last { return last.name }
            let find = try known(db, "SELECT 1 FROM \(InternalName.side(key.entity)) WHERE row = ?1")
            find.bind(1, key.row)
            return try find.first { _ in Name.registered(key.row) }
        }
        let read = try PreparedStatement(
            db,
            """
            SELECT id, e, r, k FROM \(InternalName.log) WHERE id > ?1 AND id <= ?2
            AND e IN (\(hidden.map(String.init).joined(separator: ", "))) ORDER BY id
            """)
        read.bind(1, registered)
        read.bind(2, end)
        var before: Key?
        while try read.step() {
            let id = read.integer(0)
            let key = Key(entity: read.integer(1), row: read.integer(2))
            switch read.integer(3) {
            case ChangeKind.insert.code:
                // A row that was inserted over one that is there (REPLACE on its own key) keeps its ID.
                guard try current(key) == nil else { break }
                names[key, default: []].append((id, .assigned(HiddenID.inserted(namespace: namespace, change: id))))
            case ChangeKind.delete.code:
                names[key, default: []].append((id + 1, nil))
            case ChangeKind.Mark.before:
                before = key
                continue
            default:
                guard let old = before, old != key else { break }
                let name = try current(old)
                names[old, default: []].append((id, nil))
                names[key, default: []].append((id, name))
            }
            before = nil
        }
        return names
    }
}
