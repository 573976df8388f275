import Crypto
import Foundation
package import GRDB
package import MartletCore
public import MartletStore

extension ParkedItem {
    /// Returns all pending changes: rows first, then references, then transactions.
    package static func all(_ db: Database, includingDeleted: Bool) throws -> [ParkedItem] {
        let catalog = try Catalog.load(db)
        var items: [ParkedItem] = []
        for row in try Row.fetchAll(db, sql: "SELECT * FROM _martlet_shadows ORDER BY id") {
            guard let reason = ParkReason(rawValue: row["reason"]), includingDeleted || reason.isWaiting else {
                continue
            }
            let entity = catalog[row["entity"] as Int64]
            let id: Int64 = row["id"]
            let columns = try PreparedStatement(
                db, "SELECT slot, value, reference FROM _martlet_shadow_columns WHERE shadow = ?1")
            columns.bind(1, id)
            var values: [String: Value] = [:]
            while try columns.step() {
                let name = entity?.columns.first { $0.slot == Int(columns.integer(0)) }?.name ?? "?"
                values[name] =
                    columns.integer(2) == 0 ? columns.value(1) : try StableID(bytes: columns.blob(1)).values().first
            }
            items.append(
                ParkedItem(
                    id: "r\(id)", reason: reason, detail: row["detail"], entity: entity?.name,
                    identity: StableID(bytes: row.bytes("ident")), values: values,
                    since: Date(milliseconds: row["since"])))
        }
        items += try PendingReferences.items(db, catalog)
        items += try DeferredChanges.items(db, includingDeleted: includingDeleted)
        return items
    }

    /// Returns how many items wait for something.
    package static func count(_ db: Database) throws -> Int {
        try Int.fetchOne(
            db,
            sql: """
                SELECT (SELECT count(*) FROM _martlet_shadows WHERE reason NOT IN ('deleted', 'filtered'))
                + (SELECT count(*) FROM _martlet_pending)
                + (SELECT count(*) FROM _martlet_deferred WHERE reason <> 'filtered')
                """) ?? 0
    }

    /// Returns how many rows and changes a filter holds back.
    package static func filteredCount(_ db: Database) throws -> Int {
        try Int.fetchOne(
            db,
            sql: """
                SELECT (SELECT count(*) FROM _martlet_shadows WHERE reason = 'filtered')
                + (SELECT count(*) FROM _martlet_deferred WHERE reason = 'filtered')
                """) ?? 0
    }

    /// Deletes the item with this ID.
    package static func discard(_ db: Database, _ id: String) throws {
        let number = Int64(id.dropFirst())
        switch id.first {
        case "r": try PendingRows.discard(db, number)
        case "t": try number.map { try DeferredChanges.remove(db, $0) }
        default: try PendingReferences.discard(db, id)
        }
    }
}

extension Store {
    /// Discards a pending change for good. This node then differs from the others until somebody writes the same row or
    /// column again. An agent may be running.
    ///
    /// - Parameter id: a ``ParkedItem/id``; it may be that of an update of a deleted row.
    /// - Returns: the discarded item.
    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` if no pending change has this ID.
    @discardableResult
    public func discardParked(_ id: String) throws -> ParkedItem {
        try writeOwnTables { db in
            guard try db.hasTable("_martlet_shadows"),
                let item = try ParkedItem.all(db, includingDeleted: true).first(where: { $0.id == id })
            else { throw ParkedItem.unknown(id) }
            try ParkedItem.discard(db, id)
            return item
        }
    }
}

extension ParkedItem {
    /// Returns the error for an unknown ID.
    public static func unknown(_ id: String) -> StoreError {
        StoreError(
            .invalidArgument, "There is no parked change \(id).",
            hint: "List them with `martlet parked STORE --all`. It may have been applied meanwhile.")
    }
}
