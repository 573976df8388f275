import GRDB
public import MartletStore

extension SyncEngine {
    /// Looks for rows that vanished or appeared without a trigger having run, and puts them into the history.
    public func audit() throws -> AuditReport {
        try mapErrors {
            try database.write { db in
                try SchemaFollower.follow(db)
                try Sealer.seal(db, mark: SealMark())
                let report = try Audit.run(db)
                try Sealer.seal(db, mark: SealMark(context: "audit"))
                return report
            }
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
