import Foundation
package import GRDB
package import MartletCore
package import MartletStore

/// Updates of rows whose insert, or whose change of identity or integer key, comes later in the same transaction. They
/// are kept until that change comes, and survive a commit that ends in between.
///
/// Confined to the engine's connection. Recreated after a rollback, together with its context.
package final class EarlyUpdates {
    private struct Update {
        var change: LogChange
        var identity: StableID
        /// True if the update is in the store's table.
        var isKept = false
    }

    private var updates: [Update] = []
    /// The first of the updates that are in the store. Nil if there are none.
    package var firstKept: Int64? { updates.first(where: \.isKept)?.change.id }

    package var isEmpty: Bool { updates.isEmpty }

    package init(_ db: Database, _ log: LogReader) throws {
        let read = try PreparedStatement(db, "SELECT change, ident FROM _martlet_early ORDER BY change")
        while try read.step() {
            let identity = StableID(bytes: read.blob(1))
            try log.forEach(from: read.integer(0), to: read.integer(0) + 1) { change in
                var update = change
                update.values = change.values.filter { change.isChanged($0.column) }
                updates.append(Update(change: update, identity: identity, isKept: true))
            }
        }
    }

    package func add(_ change: LogChange, _ identity: StableID) {
        updates.append(Update(change: change, identity: identity))
    }

    /// Takes the values that the row's early updates set, by slot.
    package func take(_ db: Database, _ entity: Entity, _ identity: StableID) throws -> [Int: Value] {
        guard !updates.isEmpty else { return [:] }
        var values: [Int: Value] = [:]
        for update in updates where update.change.entity.id == entity.id && update.identity == identity {
            for (column, value) in update.change.values { values[column.slot] = value }
            if update.isKept {
                try db.execute(sql: "DELETE FROM _martlet_early WHERE change = ?", arguments: [update.change.id])
            }
        }
        updates.removeAll { $0.change.entity.id == entity.id && $0.identity == identity }
        return values
    }

    /// Takes all of them, at the end of their transaction.
    package func takeAll(_ db: Database) throws -> [(change: LogChange, identity: StableID)] {
        if updates.contains(where: \.isKept) { try db.execute(sql: "DELETE FROM _martlet_early") }
        defer { updates = [] }
        return updates.map { ($0.change, $0.identity) }
    }

    /// Stores the waiting updates when a commit ends in the middle of their transaction.
    package func keep(_ db: Database) throws {
        for index in updates.indices where !updates[index].isKept {
            try db.execute(
                sql: "INSERT INTO _martlet_early(change, ident) VALUES (?, ?)",
                arguments: [updates[index].change.id, Data(updates[index].identity.bytes)])
            updates[index].isKept = true
        }
    }
}
