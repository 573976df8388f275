import GRDB
public import MartletStore

extension SyncEngine {
    /// Looks for rows that vanished or appeared without any trigger having run, and adds them to the history.
    ///
    /// Reads every tracked row once. Others can write meanwhile.
    /// - Parameter progress: called from time to time with the progress, on the calling thread.
    public func audit(progress: @escaping (AuditProgress) -> Void = { _ in }) throws -> AuditReport {
        // The context doesn't see what the audit changes in the log and the clocks.
        try forgetContext()
        return try mapErrors {
            try database.writeWithoutTransaction {
                try Audit.runSliced($0, patience: schemaPatience, progress: progress)
            }
        }
    }

    /// Deletes history that is older than the age, or beyond the size, as far as no cursor needs it. Also deletes its
    /// published messages.
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
        // Also covers history that was deleted some other way.
        try trimOutbox()
        return count
    }

    /// A limited number of rows in each transaction.
    private func prune(through mark: Int64) throws -> Int {
        var count = 0
        while true {
            let pruned = try write { try Pruner.prune($0, through: mark) }
            count += pruned.count
            if !pruned.hasMore { return count }
        }
    }
}
