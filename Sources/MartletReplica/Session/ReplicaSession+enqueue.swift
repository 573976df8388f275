import GRDB
import MartletStore

/// Enqueuing: what local programs have written gets its clocks and its place in the outbox.
extension ReplicaSession {
    /// Enqueues local transactions, as many as one commit takes, the last one possibly in part.
    ///
    /// - Returns: whether there may be more, and the entries that were added to the outbox, or the first of them.
    package func enqueueSome() throws -> (hasMore: Bool, entries: [OutboxEntry]) {
        try inTurn(
            keepsCache: true,
            unless: { _ in try hasNothingToEnqueue() ? (false, []) : nil },
            { db, context, _ in
                let progress = try enqueueSlice(db, context)
                let isDone = try !progress.hasMore && settleLocal(db, context)
                try noteClosed(db, context)
                return (!isDone, progress.handed)
            })
    }

    /// If there is nothing to do, this costs two reads and no write lock. A changed schema counts as work, since
    /// changes that wait for it may apply now.
    private func hasNothingToEnqueue() throws -> Bool {
        guard let context = cache.context, let closing = cache.closing, let stamped = context.stamps.through,
            context.left.isEmpty, try closing.currentSchemaVersion() == context.schemaVersion
        else { return false }
        return try closing.newest().map { $0.entity == 0 && $0.id == stamped } ?? true
    }

    func enqueueSlice(_ db: Database, _ context: ReplicaContext) throws -> Enqueuer.Progress {
        let enqueuer = Enqueuer(db: db, context: context, encoding: configuration.encoding)
        let progress = try enqueuer.run(EnqueueSlice(configuration.enqueueLimits, instant: instant))
        guard progress.hasMore, context.hasNews else { return progress }
        // Changes that wait for these ones continue when all local changes have their clocks. A crash must not lose
        // that.
        try context.news.noteUnsettled(db)
        try context.left.keep(db)
        try Applier(db, context).dropIdleArrivals()
        return progress
    }

    /// Enqueues the rest of a transaction that is enqueued in part.
    package func finishOpenTransaction() throws {
        var limits = configuration.enqueueLimits
        limits.transactions = 1
        while try read(OpenTransaction.exists) {
            try inTurn(keepsCache: false) { (db, context, _) -> Void in
                let enqueuer = Enqueuer(db: db, context: context, encoding: configuration.encoding)
                _ = try enqueuer.run(EnqueueSlice(limits, instant: instant))
                if context.hasNews { try context.news.noteUnsettled(db) }
                try context.left.keep(db)
            }
        }
    }

    /// Applies pending changes that a local change, or a schema change, has unblocked. Rows that refer to rows which
    /// local changes removed become pending. A commit takes a slice of these.
    ///
    /// - Returns: false if there is more.
    func settleLocal(_ db: Database, _ context: ReplicaContext) throws -> Bool {
        if !context.hasRetriedUnknown {
            context.hasRetriedUnknown = true
            try DeferredRetry(db, context, configuration.limits).retryUnknown()
        }
        guard context.hasNews || context.news.unsettled != .nothing else { return true }
        let applier = Applier(db, context)
        var slice = EnqueueSlice(configuration.enqueueLimits, instant: instant)
        var hasMore = true
        while hasMore, slice.hasRoomWithin {
            let part = try context.left.take(db, limit: slice.partRows)
            try applier.adopt(part.left)
            if !part.hasMore, context.news.unsettled == .unknown { try applier.retryAll() }
            try applier.settle()
            for _ in 0..<slice.partRows { slice.note(0) }
            hasMore = part.hasMore
        }
        if hasMore {
            try context.news.noteUnsettled(db)
        } else {
            try context.news.noteSettled(db)
        }
        try context.applied.close(db, mark: TransactionMark(author: TransactionAuthor.sync, context: "settle"))
        try noteClosed(db, context)
        return !hasMore
    }
}
