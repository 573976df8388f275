import Foundation
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
        var deleted = 0
        if let age {
            let limit = Date(timeIntervalSince1970: Double(now()) / 1000 - age / .seconds(1))
            deleted += try History.prune(database) { db in try History.mark(db, before: limit) }.deletedCount
        }
        if let sizeBytes {
            deleted += try History.prune(database) { db in try History.mark(db, keepingBytes: sizeBytes) }.deletedCount
        }
        if deleted > 0 { try trimOutbox() }
        return deleted
    }
}
