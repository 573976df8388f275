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
            try database.writeWithoutTransaction { try Audit.runSliced($0, progress: progress) }
        }
    }

    /// Deletes history that is older than the age, or beyond the size, as far as no cursor needs it, and what was
    /// published of it.
    ///
    /// - Returns: how many rows of the log were deleted.
    @discardableResult
    public func retainHistory(age: Duration?, sizeBytes: Int64?) throws -> Int {
        try mapErrors {
            try database.write { db in
                var count = 0
                try placePublisherCursor(db)
                if let age {
                    let limit = now() - Int64(age / .milliseconds(1))
                    count += try Pruner.prune(db, through: try Pruner.mark(db, before: limit)).count
                }
                if let sizeBytes {
                    count += try Pruner.prune(db, through: try Pruner.mark(db, keepingBytes: sizeBytes)).count
                }
                // Also what left the history in another way.
                try Outbox.trim(db)
                return count
            }
        }
    }
}
