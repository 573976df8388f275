package import GRDB

/// The IDs that rows inserted since the last stamping will get.
package struct UnstampedInserts {
    private struct Insert {
        var id: Int64
        /// In milliseconds since 1970.
        var time: Int64
    }

    private var inserts: [RowKey: [Insert]] = [:]
    private let ids: HiddenIDRule
    private let entities: [Int64: Entity]

    package init(_ db: Database, _ catalog: Catalog) throws {
        ids = try HiddenIDRule.load(db)
        entities = Dictionary(
            uniqueKeysWithValues: catalog.entities.filter(\.recordsNames).map { ($0.id, $0) })
        let hidden = entities.keys.sorted().map(String.init)
        guard !hidden.isEmpty else { return }
        let read = try PreparedStatement(
            db,
            """
            SELECT id, e, r, t FROM \(InternalName.log) AS c WHERE id > ?1 AND k = \(ChangeKind.insert.code)
            AND e IN (\(hidden.joined(separator: ", "))) ORDER BY id
            """)
        read.bind(1, try Meta.integer(db, MetaKey.stamped) ?? 0)
        while try read.step() {
            inserts[RowKey(entity: read.integer(1), row: read.integer(2)), default: []].append(
                Insert(id: read.integer(0), time: read.integer(3)))
        }
        // A row that replaced an existing one (REPLACE on its own key) keeps its ID.
        for key in inserts.keys {
            let known =
                try Bool.fetchOne(
                    db, sql: "SELECT 1 FROM \(InternalName.side(key.entity)) WHERE row = ?", arguments: [key.row])
                ?? false
            if known { inserts[key] = try Self.afterDelete(db, key, inserts[key] ?? []) }
        }
    }

    private static func afterDelete(_ db: Database, _ key: RowKey, _ inserts: [Insert]) throws -> [Insert] {
        let stamped = try Meta.integer(db, MetaKey.stamped) ?? 0
        let deleted = try Int64.fetchOne(
            db,
            sql: """
                SELECT min(id) FROM \(InternalName.log) WHERE id > ? AND e = ? AND r = ?
                AND k = \(ChangeKind.delete.code)
                """,
            arguments: [stamped, key.entity, key.row])
        guard let deleted else { return [] }
        return inserts.filter { $0.id > deleted }
    }

    /// Returns the ID of the row as of this change, if it was inserted since the last stamping and its columns don't
    /// identify it.
    package func latest(_ entity: Int64, _ row: Int64, through change: Int64) -> StableID? {
        guard let insert = insert(entity, row, through: change),
            entities[entity]?.asOf(insert.id).identity == .hidden
        else { return nil }
        return ids.inserted(change: insert.id, time: insert.time)
    }

    /// Returns the integer keys of the rows that will get these IDs when they are stamped.
    func rows() -> [Int64: [StableID: Int64]] {
        var rows: [Int64: [StableID: Int64]] = [:]
        for key in inserts.keys {
            guard let identity = latest(key.entity, key.row, through: .max) else { continue }
            rows[key.entity, default: [:]][identity] = key.row
        }
        return rows
    }

    /// Returns the current stable ID of the row. Nil if it has none.
    package func name(_ db: Database, _ entity: Entity, row: Int64, _ resolver: IdentityResolver) throws -> StableID? {
        if let assigned = latest(entity.id, row, through: .max) { return assigned }
        // The ID stored under its integer key may belong to a row that was there before.
        if insert(entity.id, row, through: .max) != nil,
            let declared = try resolver.declaredIdentity(db, entity, row: row)
        {
            return declared
        }
        return try resolver.identity(db, entity, row: row)
    }

    private func insert(_ entity: Int64, _ row: Int64, through change: Int64) -> Insert? {
        inserts[RowKey(entity: entity, row: row)]?.last { $0.id <= change }
    }
}
