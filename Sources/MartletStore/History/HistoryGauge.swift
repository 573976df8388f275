package import GRDB
import Synchronization

/// Decides when the history has to be measured or searched. Either reads much of it, and an agent asks once a minute.
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

    /// What was found of the ages of transactions.
    private struct Search {
        /// Transactions before the row `next` are from before this time.
        var time: Int64
        var next: Int64
        /// Up to where history was deleted because of its age.
        var deletedThrough: Int64?
    }

    private let measurement = Mutex<Measurement?>(nil)
    private let search = Mutex<Search?>(nil)

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

    /// To be called if nothing came of the measurement. The next one is due at once.
    package func forget() { measurement.withLock { $0 = nil } }

    // MARK: Age

    /// Returns what ``Pruner/mark(_:before:from:)`` does. The transactions that were found to be older last time,
    /// because a cursor keeps them or because they are large, are not read again.
    package func mark(_ db: Database, before time: Int64) throws -> Int64 {
        let last = try db.lastChange()
        let known = search.withLock { search in
            // Not after the clock was set back, or the file replaced.
            if let found = search, found.time > time || found.next > last + 1 { search = nil }
            return search
        }
        let mark = try Pruner.mark(db, before: time, from: known?.next ?? 0)
        search.withLock {
            $0 = Search(time: time, next: min(mark, last) + 1, deletedThrough: known?.deletedThrough)
        }
        return mark
    }

    /// Returns true if there may be history up to this transaction that was not deleted because of its age yet.
    package func mayDelete(through end: Int64) -> Bool { search.withLock { $0?.deletedThrough != end } }

    /// Records that everything through this transaction was deleted because of its age.
    package func noteDeleted(through end: Int64) { search.withLock { $0?.deletedThrough = end } }
}
