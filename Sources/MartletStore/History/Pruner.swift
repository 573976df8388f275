package import GRDB

/// Deletes history from its old end, for whoever is in a transaction already.
package enum Pruner {
    /// Deletes up to this transaction, as far as every cursor has passed it. The newest transaction mark stays, so that ids
    /// are never used again.
    package static func prune(_ db: Database, through wanted: Int64) throws -> (
        count: Int, through: Int64, holder: String?
    ) {
        let newest =
            try Int64.fetchOne(db, sql: "SELECT id FROM \(InternalName.log) WHERE e = 0 ORDER BY id DESC LIMIT 1") ?? 0
        var end = min(wanted, newest - 1)
        var holder: String?
        if let cursor = try Row.fetchOne(
            db, sql: "SELECT name, position FROM \(InternalName.cursors) ORDER BY position LIMIT 1"),
            (cursor["position"] as Int64) < end
        {
            holder = cursor["name"]
            end = cursor["position"]
        }
        let mark = try Int64.fetchOne(
            db, sql: "SELECT max(id) FROM \(InternalName.log) WHERE e = 0 AND id <= ?", arguments: [end])
        let through = max(mark ?? 0, try Meta.integer(db, MetaKey.prunedThrough) ?? 0)
        try PrunedRegistration.run(db, through: through)
        try RowPrints.prune(db, through: through)
        try db.execute(sql: "DELETE FROM \(InternalName.log) WHERE id <= ?", arguments: [through])
        let count = db.changesCount
        try db.execute(sql: "DELETE FROM \(InternalName.retired) WHERE until <= ?", arguments: [through])
        try Meta.set(db, MetaKey.prunedThrough, through)
        return (count, through, holder)
    }

    /// The id before the first transaction at this time or later, in milliseconds since 1970. What comes after that one
    /// may look older only because a clock was wrong.
    package static func mark(_ db: Database, before time: Int64) throws -> Int64 {
        let younger = try Int64.fetchOne(
            db, sql: "SELECT id FROM \(InternalName.log) WHERE e = 0 AND t >= ? ORDER BY id LIMIT 1", arguments: [time])
        return younger.map { $0 - 1 } ?? .max
    }

    /// What the pages of the log come to.
    static func logBytes(_ db: Database) throws -> Int64 {
        try Int64.fetchOne(
            db, sql: "SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name = ? AND aggregate = TRUE",
            arguments: [InternalName.log]) ?? 0
    }

    /// The id up to which history must go so that the log keeps about this many bytes, by the average size of its rows.
    package static func mark(_ db: Database, keepingBytes bytes: Int64) throws -> Int64 {
        let size = try logBytes(db)
        guard size > bytes, let first = try Int64.fetchOne(db, sql: "SELECT min(id) FROM \(InternalName.log)"),
            let last = try Int64.fetchOne(db, sql: "SELECT max(id) FROM \(InternalName.log)")
        else { return 0 }
        let share = Double(size - bytes) / Double(size)
        return first + Int64(Double(last - first) * share)
    }
}
