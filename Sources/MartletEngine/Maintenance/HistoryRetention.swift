import MartletReplica
import MartletStore

/// Deletes history that nobody needs any more.
struct HistoryRetention {
    let session: ReplicaSession

    /// Deletes history that is older than the age, or beyond the size, as far as no cursor needs it. Also deletes its
    /// published messages.
    ///
    /// - Parameter isStopped: called between SQLite transactions; true leaves the rest for the next time.
    /// - Returns: how many rows of the log were deleted.
    func apply(age: Duration?, sizeBytes: Int64?, isStopped: () -> Bool) throws -> Int {
        var count = 0
        try session.write { try PublishProgress.placeCursor($0) }
        if let age {
            let limit = session.now() - Int64(age / .milliseconds(1))
            count += try prune(through: session.read { try Pruner.mark($0, before: limit) }, isStopped)
        }
        if let sizeBytes {
            count += try prune(through: session.read { try Pruner.mark($0, keepingBytes: sizeBytes) }, isStopped)
        }
        if isStopped() { return count }
        // Also covers history that was deleted some other way.
        _ = try PublishProgress(session).trim()
        return count
    }

    /// A limited number of rows in each transaction.
    private func prune(through mark: Int64, _ isStopped: () -> Bool) throws -> Int {
        var count = 0
        while !isStopped() {
            let pruned = try session.write { try Pruner.prune($0, through: mark) }
            count += pruned.count
            if !pruned.hasMore { break }
        }
        return count
    }
}
