package import GRDB
package import MartletStore

/// The rows of the log that the applier writes in a SQLite transaction, and the history's transactions that it closes
/// over them.
package final class AppliedLog {
    private var statements: ClosingStatements?
    /// The rows that were logged since a transaction was last closed: the ID of the first, and the time of the last.
    private var open: (first: Int64, time: Int64)?
    /// The newest transaction that was closed.
    private var closedThrough: Int64?

    /// - Parameter statements: the connection's compiled statements. Nil for a connection that closes few transactions.
    init(_ statements: ClosingStatements?) {
        self.statements = statements
    }

    /// Remembers that a row of the log was written.
    func note(_ id: Int64, time: Int64) {
        open = (open?.first ?? id, time)
    }

    /// Closes a transaction over the rows that were logged. Does nothing if there are none.
    package func close(_ db: Database, mark: TransactionMark) throws {
        guard let open else { return }
        let statements = try statements ?? ClosingStatements(db)
        self.statements = statements
        closedThrough = try TransactionCloser.close(
            db, from: open.first, time: open.time, mark: mark, using: statements)
        self.open = nil
    }

    /// The newest transaction that was closed in this SQLite transaction, unless ``takeClosed()`` took it.
    package var newest: Int64? { closedThrough }

    /// Returns the newest transaction that was closed since the last call. To be called once, at the end of the SQLite
    /// transaction: what is still open then is closed by the next one, which looks for it.
    func takeClosed() -> Int64? {
        defer { (open, closedThrough) = (nil, nil) }
        return closedThrough
    }
}
