import Foundation
import GRDB
import MartletStore
import Synchronization

/// Gives the contexts of a container access to their store: through its queue or, in a stage of a migration, inside the
/// migration's transaction.
final class StoreAccess: Sendable {
    /// A stage of a migration.
    private struct Stage {
        let alteration: Alteration
        /// The context of the history transaction for each save.
        let name: String
        let thread: pthread_t
    }

    let store: Store
    /// Absolute, since a program may change its working directory.
    private let path: String
    // Safe because it is only used on the connection's queue, which a migration holds.
    nonisolated(unsafe) let statements = StatementCache()
    let isMigrating: Bool
    // Safe because it never changes, and its alteration is only used on the stage's thread, until `end()`.
    nonisolated(unsafe) private let stage: Stage?
    private let isOver = Mutex(false)

    init(_ store: Store) {
        self.store = store
        path = URL(fileURLWithPath: store.path).path
        isMigrating = false
        stage = nil
    }

    /// For contexts in a stage, on this thread, until ``end()``.
    init(_ store: Store, migrating alteration: Alteration, stage name: String) {
        self.store = store
        path = store.path
        isMigrating = true
        stage = Stage(alteration: alteration, name: name, thread: pthread_self())
    }

    /// Invalidates the contexts of the stage.
    func end() {
        isOver.withLock { $0 = true }
        statements.removeAll()
    }

    deinit {
        // SQLite closes no connection that has compiled statements.
        if !isMigrating { try? store.withConnection { _ in statements.removeAll() } }
    }

    private func checked(_ stage: Stage) throws -> Database {
        guard pthread_equal(stage.thread, pthread_self()) != 0, !isOver.withLock({ $0 }) else {
            throw SwiftDataError.configuration.because(
                """
                A context of a migration can only be used in the closure that received it, on its thread. Afterwards, \
                create a context with the opened container.
                """
            )
        }
        try checkTransaction()
        return stage.alteration.database
    }

    /// - Throws: `StoreError` if SQLite has rolled back the transaction by itself, as it does when the disk is full.
    func checkTransaction() throws {
        guard let stage, !stage.alteration.database.isInsideTransaction else { return }
        throw StoreError(
            .sqlite, "SQLite rolled back the transaction after an error.", hint: "Check for a full disk. Try again.")
    }

    func read<T>(_ body: (Database) throws -> T) throws -> T {
        guard let stage else { return try store.read(body) }
        return try store.mapErrors { try body(try checked(stage)) }
    }

    /// Reads for a getter, which can't throw. The caller must pass an error to ``ModelContext/noteFailedRead(_:of:)``.
    ///
    /// Traps inside a closure that has the connection: nothing at all can be read there, and the value that a model
    /// then seems to have might be saved.
    func readForGetter<T>(_ body: (Database) throws -> T) throws -> T {
        do {
            return try read(body)
        } catch let error as StoreError where error.code == .nestedUse {
            preconditionFailure("A model could not load its values. \(error)")
        }
    }

    /// Writes one transaction of the history, all of it or nothing.
    ///
    /// - Returns: its token, or nil if no tracked row was changed.
    /// - Throws: `StoreError` with code `.moved` if the path leads to another file by now, or to none: nobody would see
    ///   what is written.
    @discardableResult
    func write(author: String?, _ body: (Database) throws -> Void) throws -> MartletStore.HistoryToken? {
        guard let stage else {
            let written = try store.writeTransaction(author: author) { db in
                try db.checkIsInPlace(path)
                try body(db)
            }
            return written.token
        }
        return try store.mapErrors {
            let db = try checked(stage)
            var sealed: Int64?
            try db.inSavepoint {
                try body(db)
                sealed = try stage.alteration.closeTransaction(author: author, context: stage.name)
                return .commit
            }
            return sealed.map { MartletStore.HistoryToken(store: store.identifier, transaction: $0) }
        }
    }

    // MARK: History

    func fetchHistory(
        _ query: HistoryQuery, _ clause: (HistoryNames) throws -> HistoryClause
    ) throws -> [MartletStore.HistoryTransaction] {
        guard stage != nil else { return try store.fetchHistory(query, clause) }
        return try read { try store.fetchHistory($0, query, clause) }
    }

    func checkDeletesHistory() throws {
        guard stage == nil else {
            throw SwiftDataError.configuration.because(
                "History can't be deleted during a migration. Delete it afterwards.")
        }
    }

    /// - Parameter token: nil deletes all of it.
    func deleteHistory(through token: MartletStore.HistoryToken?) throws {
        try checkDeletesHistory()
        guard let token = try token ?? store.lastToken() else { return }
        _ = try store.deleteHistory(through: token)
    }

    /// - Throws: the errors of creating the clause.
    func checkHistory(_ clause: (HistoryNames) throws -> HistoryClause) throws {
        var query = HistoryQuery()
        query.limit = 0
        _ = try fetchHistory(query, clause)
    }

    func deleteHistory(where clause: (HistoryNames) throws -> HistoryClause) throws {
        try checkDeletesHistory()
        _ = try store.deleteHistory(where: clause)
    }

    func deleteHistory(before date: Date) throws {
        try checkDeletesHistory()
        _ = try store.deleteHistory(before: date)
    }
}
