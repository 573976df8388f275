package import GRDB
import Synchronization

/// Decides when the history has to be measured. That reads all of it, and an agent asks once a minute.
///
/// If the whole file is smaller than the bound, or the history has hardly grown since it was last measured, there is no
/// need. Safe to use from any thread.
package final class HistoryGauge: Sendable {
    private struct Measurement {
        var bound: Int64
        /// The highest ID in the log.
        var last: Int64
        /// What the file contained, in bytes.
        var used: Int64
        /// The position of the cursor that is furthest behind.
        var cursor: Int64?
        /// Whether the log was larger than the bound.
        var isOver = false
    }

    private let measurement = Mutex<Measurement?>(nil)

    package init() {}

    /// By what fraction the log may grow until it is measured again.
    private static let tolerance: Int64 = 16

    /// Returns true if the log may have outgrown the bound. The caller measures it then.
    package func isDue(_ db: Database, bound: Int64) throws -> Bool {
        let used = try FileSpace.read(db).usedBytes
        guard used > bound, let last = try Int64.fetchOne(db, sql: "SELECT max(id) FROM \(InternalName.log)"),
            let first = try Int64.fetchOne(db, sql: "SELECT min(id) FROM \(InternalName.log)")
        else { return false }
        let cursor = try Int64.fetchOne(db, sql: "SELECT min(position) FROM \(InternalName.cursors)")
        let new = Measurement(bound: bound, last: last, used: used, cursor: cursor)
        return measurement.withLock { measurement in
            if let known = measurement, known.bound == bound,
                last - known.last < max(1, (last - first) / Self.tolerance),
                used - known.used < max(1, bound / Self.tolerance), !known.isOver || known.cursor == cursor
            {
                return false
            }
            measurement = new
            return true
        }
    }

    /// Records what came of the measurement.
    ///
    /// - Parameters:
    ///   - isOver: Whether the log was larger than the bound. The next measurement is due once a cursor has moved.
    ///   - hasDeleted: Whether history was deleted since. Then the next one is due at once: how much to delete is
    ///     estimated from the average size of a row.
    package func note(isOver: Bool, hasDeleted: Bool) {
        measurement.withLock { measurement in
            if hasDeleted { measurement = nil }
            measurement?.isOver = isOver
        }
    }
}
