package import Foundation
import GRDB

/// How large and how old a store's history is, and what keeps it.
package struct HistoryReport: Sendable, Equatable {
    /// History that the agent would delete if a cursor had passed it.
    package struct Held: Sendable, Equatable {
        package var cursor: String
        /// Estimated from the average size of the log's rows.
        package var bytes: Int64
        /// When the cursor was last moved.
        package var updated: Date?
        /// What to do about it.
        package var hint: String

        package init(cursor: String, bytes: Int64, updated: Date? = nil, hint: String) {
            self.cursor = cursor
            self.bytes = bytes
            self.updated = updated
            self.hint = hint
        }
    }

    package var size: HistorySize
    /// The time of the oldest transaction.
    package var oldest: Date?
    /// Nil if no agent has recorded its bounds yet.
    package var bounds: HistoryBounds?
    package var held: Held?

    package init(size: HistorySize, oldest: Date?, bounds: HistoryBounds?, held: Held?) {
        self.size = size
        self.oldest = oldest
        self.bounds = bounds
        self.held = held
    }
}

extension Store {
    /// Describes the history. Reads the whole log, so don't call it every second.
    package func historyReport(at now: Date = Date()) throws -> HistoryReport {
        let size = try historySize()
        return try read { db in
            let bounds = try HistoryBounds.load(db)
            let oldest = try Int64.fetchOne(
                db,
                sql: """
                    SELECT t FROM \(InternalName.log) WHERE e = 0 AND \(HistoryClause.isShown) ORDER BY id LIMIT 1
                    """)
            return HistoryReport(
                size: size, oldest: oldest.map { HistoryReader.date($0) }, bounds: bounds,
                held: try bounds.flatMap { try held(db, beyond: $0, of: size.bytes, at: now) })
        }
    }

    private func held(
        _ db: Database, beyond bounds: HistoryBounds, of bytes: Int64, at now: Date
    ) throws -> HistoryReport.Held? {
        guard let first = try Int64.fetchOne(db, sql: "SELECT min(id) FROM \(InternalName.log)"),
            let last = try Int64.fetchOne(db, sql: "SELECT max(id) FROM \(InternalName.log)")
        else { return nil }
        var wanted: Int64 = 0
        if let age = bounds.age {
            let time = HistoryReader.milliseconds(now) - age.wholeMilliseconds
            wanted = try min(Pruner.mark(db, before: time), HistoryArrivals.load(db).last(before: time))
        }
        if let size = bounds.sizeBytes {
            wanted = max(wanted, try Pruner.mark(db, keepingBytes: size, of: bytes))
        }
        // Only whole transactions are deleted.
        guard let mark = try Pruner.mark(db, after: 0, near: wanted, through: wanted) else { return nil }
        let (end, holder) = try Pruner.reach(db, mark)
        guard let holder else { return nil }
        // A cursor may be before everything that is left.
        let rows = mark - max(end, first - 1)
        guard rows > 0 else { return nil }
        let updated = try Int64.fetchOne(
            db, sql: "SELECT updated FROM \(InternalName.cursors) WHERE name = ?", arguments: [holder])
        return HistoryReport.Held(
            cursor: holder, bytes: Int64(Double(bytes) * Double(rows) / Double(last - first + 1)),
            updated: updated.map { HistoryReader.date($0) }, hint: Cursors.hint(holder, store: path))
    }
}
