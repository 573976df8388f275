package import GRDB

/// The named values of a store.
package enum Meta {
    package static func integer(_ db: Database, _ key: String) throws -> Int64? {
        try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT value FROM \(InternalName.meta) WHERE key = ?"), arguments: [key])
    }

    package static func text(_ db: Database, _ key: String) throws -> String? {
        try String.fetchOne(
            db.cachedStatement(sql: "SELECT value FROM \(InternalName.meta) WHERE key = ?"), arguments: [key])
    }

    package static func set(_ db: Database, _ key: String, _ value: (any DatabaseValueConvertible)?) throws {
        try db.cachedStatement(
            sql: """
                INSERT INTO \(InternalName.meta)(key, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE
                SET value = excluded.value
                """
        ).execute(arguments: [key, value])
    }

    /// Returns the values whose keys begin like this, in the order of the keys.
    ///
    /// - Parameter limit: how many at most.
    package static func entries(
        _ db: Database, _ prefix: String, limit: Int = .max
    ) throws -> [(key: String, value: DatabaseValue)] {
        try Row.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT key, value FROM \(InternalName.meta)
                    WHERE key >= ?1 AND key < ?1 || char(0x10FFFF) AND value IS NOT NULL ORDER BY key LIMIT ?2
                    """), arguments: [prefix, limit]
        ).map { ($0["key"], $0["value"]) }
    }

    package static func remove(_ db: Database, _ key: String) throws {
        try db.cachedStatement(sql: "DELETE FROM \(InternalName.meta) WHERE key = ?").execute(arguments: [key])
    }
}

package enum MetaKey {
    package static let format = "format"
    package static let storeID = "store_id"
    /// The namespace from which assigned IDs are derived: the store's own, unless `attach --seed` gave one.
    package static let hiddenNamespace = "hidden_namespace"
    /// The first change whose assigned IDs ascend; see ``HiddenIDRule``.
    package static let firstAscendingChange = "first_ascending"
    package static let schemaVersion = "schema_version"
    /// The version of the capture triggers' SQL.
    package static let triggerVersion = "trigger_version"
    /// The schema whose triggers have that version, by SQLite's number.
    package static let triggerSchema = "trigger_schema"
    /// The ID of the last stamped change: all transactions up to it have clocks and stable IDs.
    package static let stamped = "registered"
    package static let prunedThrough = "pruned_through"
    /// The agent's bounds of the history, in milliseconds and bytes; see ``HistoryBounds``. 0: no bound.
    package static let historyAge = "history_age"
    package static let historyBytes = "history_bytes"
    /// As JSON; see ``HistoryArrivals``.
    package static let historyArrivals = "history_arrivals"
    /// Tables whose rows went and came unseen for a while, by entity ID, as JSON. Rows that other rows referred to may
    /// have gone with them.
    package static let unseenTables = "unseen_tables"
}
