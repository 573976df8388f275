import GRDB
import MartletStore

extension DeferredRetry {
    /// Applies deferred transactions whose clock is no longer ahead, and returns how many.
    package static func releaseDue(_ session: ReplicaSession) throws -> Int {
        guard session.releases.begin() else { return 0 }
        var next: Int64? = .max
        defer { if next != nil { session.releases.note() } }
        next = try session.read(DeferredChanges.nextRelease)
        guard let next, next <= session.now() else { return 0 }
        return try session.transaction { db, context in
            try Self(db, context, session.configuration.limits).retry(.released(by: session.now()))
        }
    }

    /// Retries everything that is pending, in one SQLite transaction.
    ///
    /// - Returns: how many items waited before, and how many still do.
    package static func retryAll(_ session: ReplicaSession) throws -> (before: Int, after: Int) {
        let before = try session.read(ParkedItem.count)
        let after = try session.transaction { db, context in
            try Self(db, context, session.configuration.limits).retryAll()
            return try ParkedItem.count(db)
        }
        return (before, after)
    }
}
