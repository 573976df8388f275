import GRDB
public import MartletStore

extension SyncEngine {
    /// Looks for rows that vanished or appeared without a trigger having run, and puts them into the history.
    ///
    /// Reads every tracked row once, while others can write.
    /// - Parameter progress: is told from time to time how far it is, on the calling thread.
    public func audit(progress: @escaping (AuditProgress) -> Void = { _ in }) throws -> AuditReport {
        // What it does to the log and to clocks, the context has not seen.
        try forgetContext()
        return try mapErrors {
            try database.writeWithoutTransaction {
                try Audit.runSliced($0, patience: schemaPatience, progress: progress)
            }
        }
    }

    /// Deletes history that is older than the age, or beyond the size, as far as no cursor needs it, and what was
    /// published of it.
    ///
    /// - Returns: how many rows of the log were deleted.
    @discardableResult
    public func retainHistory(age: Duration?, sizeBytes: Int64?) throws -> Int {
        var count = 0
        try write { try placePublisherCursor($0) }
        if let age {
            let limit = now() - Int64(age / .milliseconds(1))
            count += try prune(through: read { try Pruner.mark($0, before: limit) })
        }
        if let sizeBytes {
            count += try prune(through: read { try Pruner.mark($0, keepingBytes: sizeBytes) })
        }
        // Also what left the history in another way.
        try trimOutbox()
        return count
    }

    /// Some rows in each transaction.
    private func prune(through mark: Int64) throws -> Int {
        var count = 0
        while true {
            let pruned = try write { try Pruner.prune($0, through: mark) }
            count += pruned.count
            if !pruned.hasMore { return count }
        }
    }
}
