import MartletReplica
import MartletStore

/// Deletes history that nobody needs any more.
struct HistoryRetention {
    let session: ReplicaSession
    /// What was last found of the history's size and age.
    let gauge: HistoryGauge

    /// Deletes history that is older than the age, or beyond the size, as far as no cursor needs it. Also deletes its
    /// published messages.
    ///
    /// - Parameter isStopped: called between SQLite transactions; true leaves the rest for the next time.
    /// - Returns: how many rows of the log were deleted.
    func apply(age: Duration?, sizeBytes: Int64?, isStopped: () -> Bool) throws -> Int {
        var count = 0
        let now = session.now()
        let arrivals = try session.write { db in
            try PublishProgress.placeCursor(db)
            try HistoryBounds(age: age, sizeBytes: sizeBytes).record(db)
            return try age.map { try HistoryArrivals.look(db, at: now, age: $0.wholeMilliseconds) }
        }
        if let age, let arrivals {
            count += try apply(before: now - age.wholeMilliseconds, arrivals, isStopped)
        }
        if let sizeBytes { count += try apply(sizeBytes: sizeBytes, isStopped) }
        if isStopped() { return count }
        // Also covers history that was deleted some other way.
        _ = try PublishProgress(session).trim()
        return count
    }

    /// - Parameter time: in milliseconds since 1970. Transactions that were written and came before it are deleted.
    private func apply(before time: Int64, _ arrivals: HistoryArrivals, _ isStopped: () -> Bool) throws -> Int {
        let end = try session.read { db in
            try Pruner.reach(db, min(arrivals.last(before: time), gauge.mark(db, before: time))).end
        }
        guard gauge.mayDelete(through: end) else { return 0 }
        let (count, isDone) = try prune(through: end, isStopped)
        if isDone { gauge.noteDeleted(through: end) }
        return count
    }

    private func apply(sizeBytes: Int64, _ isStopped: () -> Bool) throws -> Int {
        guard try session.read({ try gauge.isDue($0, bound: sizeBytes) }) else { return 0 }
        var isDone = false
        // The store may be busy, and the history is still too large then.
        defer { if !isDone { gauge.forget() } }
        let mark = try session.read { try Pruner.mark($0, keepingBytes: sizeBytes) }
        let pruned = try prune(through: mark, isStopped)
        isDone = pruned.isDone
        gauge.note(isOver: mark > 0, hasDeleted: pruned.count > 0)
        return pruned.count
    }

    /// A limited number of rows in each transaction.
    private func prune(through mark: Int64, _ isStopped: () -> Bool) throws -> (count: Int, isDone: Bool) {
        var count = 0
        while !isStopped() {
            let pruned = try session.write { try Pruner.prune($0, through: mark) }
            count += pruned.count
            if !pruned.hasMore { return (count, true) }
        }
        return (count, false)
    }
}
