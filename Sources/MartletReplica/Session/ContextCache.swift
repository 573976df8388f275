import GRDB
import MartletCore
import MartletStore

/// What a session keeps between transactions. Confined to its connection's queue.
final class ContextCache {
    var context: ReplicaContext?
    var closing: ClosingStatements?
    /// True once the engine begins to release its statements, so that nobody compiles new ones before the
    /// connection is closed: SQLite doesn't close a connection that has any.
    var isClosed = false
    /// The data version after the last commit at which the context matched the file. Nil if the file must be
    /// checked.
    var dataVersion: UInt32?
    /// The state of tables that were being recreated, and are no longer waited for.
    var settledTables: [String: Int64?] = [:]
    /// How long the next transaction has waited for tables that are being recreated.
    var waited = Duration.zero
    /// The change up to which everything had its clocks at the last commit. This goes back only if somebody puts an
    /// older file in place.
    var stamped: Int64 = 0

    /// Up to where the publisher's cursor is known to have passed remote transactions.
    var passedThrough: Int64 = 0

    /// To be called right after a commit of this connection: no one else's commit can have been seen since.
    func noteCommit(_ db: Database) {
        dataVersion = context?.hasChangedSchema ?? true ? nil : db.dataVersion
    }

    func closingStatements(_ db: Database) throws -> ClosingStatements {
        if let closing { return closing }
        guard !isClosed else { throw StoreError(.sqlite, "The engine is closed.") }
        let closing = try ClosingStatements(db)
        self.closing = closing
        return closing
    }

    func close() {
        isClosed = true
        context = nil
        closing = nil
    }
}
