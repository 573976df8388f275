package import GRDB

/// The values of the log row that closes a transaction (its mark).
package struct TransactionMark: Sendable {
    package var author: String?
    package var context: String?
    package var process: String?
    package var origin: TransactionOrigin?

    package init(
        author: String? = nil, context: String? = nil, process: String? = nil, origin: TransactionOrigin? = nil
    ) {
        self.author = author
        self.context = context
        self.process = process
        self.origin = origin
    }

    static func foreign(author: String?) -> TransactionMark { TransactionMark(author: author) }
}

/// Closes a transaction in the log: all changes that follow the last transaction mark.
///
/// The changes after the last mark in the log are still open. They always belong to whole committed transactions,
/// because a connection closes its transaction in the SQLite transaction in which it writes, or under the write lock.
package enum TransactionCloser {
    static func hasUnclosed(_ db: Database) throws -> Bool {
        let last = try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT e FROM \(InternalName.log) ORDER BY id DESC LIMIT 1"))
        return (last ?? 0) != 0
    }

    /// Closes the open changes as one transaction. The cost is O(1) in the history, and linear in the number of open
    /// changes.
    ///
    /// - Parameter statements: The connection's compiled statements, if it closes transactions often.
    /// - Returns: The ID of the transaction, or nil if there were no open changes.
    @discardableResult
    package static func close(_ db: Database, mark: TransactionMark, using statements: ClosingStatements? = nil) throws
        -> Int64?
    {
        let statements = try statements ?? ClosingStatements(db)
        guard let last = try statements.newest(), last.entity != 0 else { return nil }
        return try close(db, through: last, mark: mark, using: statements)
    }

    /// Closes the open changes as one transaction, if there are any.
    ///
    /// - Returns: The newest mark of the log after that, or 0 if it has none.
    package static func newestMark(
        _ db: Database, closingWith mark: TransactionMark, using statements: ClosingStatements
    ) throws
        -> Int64
    {
        guard let last = try statements.newest() else { return 0 }
        return last.entity == 0 ? last.id : try close(db, through: last, mark: mark, using: statements)
    }

    /// Closes the open changes as one transaction, for a caller that knows the newest mark.
    ///
    /// - Returns: The ID of the transaction, or nil if there were no open changes.
    static func close(
        _ db: Database, after previous: Int64, mark: TransactionMark, using statements: ClosingStatements
    ) throws -> Int64? {
        guard let last = try statements.newest(), last.id > previous else { return nil }
        // Use the time of the last change: a transaction that is closed late must not look younger than it is.
        return try close(db, from: previous + 1, time: last.time, mark: mark, using: statements)
    }

    private static func close(
        _ db: Database, through last: ClosingStatements.LogRow, mark: TransactionMark,
        using statements: ClosingStatements
    ) throws -> Int64 {
        let previous = try statements.newestMark(through: last.id)
        return try close(db, from: previous + 1, time: last.time, mark: mark, using: statements)
    }

    /// Closes the changes from the first one on, for a caller that has written all of them and knows which are open.
    ///
    /// - Parameter time: The time of the last change, in milliseconds since 1970.
    /// - Returns: The ID of the transaction.
    package static func close(
        _ db: Database, from first: Int64, time: Int64, mark: TransactionMark, using statements: ClosingStatements
    ) throws -> Int64 {
        let insert = statements.insert(mark)
        insert.bind(1, first)
        insert.bind(2, time)
        try insert.run()
        return insert.lastInsertedRowID
    }
}

/// The statements that run for every transaction that is closed, compiled once for a connection.
///
/// Confined to the connection. Release it before the connection is closed.
package final class ClosingStatements {
    package struct LogRow {
        package var id: Int64
        /// The entity's ID, or 0 for a mark.
        package var entity: Int64
        package var time: Int64
    }

    private let last: PreparedStatement
    /// Finds the newest mark after a row.
    private let markAfter: PreparedStatement
    /// The result of ``lookAhead()``: the newest mark among the rows through that one.
    private var scan: (mark: Int64, through: Int64)?
    private let insertLocal: PreparedStatement
    private let insertRemote: PreparedStatement
    /// The values bound to `insertRemote`; most of them are the same in the next transaction. NULL at first.
    private var bound = TransactionMark()
    private let schemaVersion: PreparedStatement
    private let followedVersion: PreparedStatement
    /// A schema version that catalog and triggers were found to know. This stays true, because every change of the
    /// schema changes the version.
    private var knownVersion: Int64?

    package init(_ db: Database) throws {
        last = try PreparedStatement(db, "SELECT id, e, t FROM \(InternalName.log) ORDER BY id DESC LIMIT 1")
        markAfter = try PreparedStatement(
            db, "SELECT id FROM \(InternalName.log) WHERE e = 0 AND id > ?1 ORDER BY id DESC LIMIT 1")
        insertRemote = try PreparedStatement(
            db,
            """
            INSERT INTO \(InternalName.log)(e, r, k, t, c1, c2, c3, c4, c5, c6, c7, c8)
            VALUES (0, ?1, 0, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
            """)
        insertLocal = try PreparedStatement(
            db, "INSERT INTO \(InternalName.log)(e, r, k, t, c1, c2, c3) VALUES (0, ?1, 0, ?2, ?3, ?4, ?5)")
        schemaVersion = try PreparedStatement(db, "PRAGMA main.schema_version")
        followedVersion = try PreparedStatement(
            db, "SELECT value FROM \(InternalName.meta) WHERE key = '\(MetaKey.schemaVersion)'")
    }

    /// Returns the statement that writes this mark, except for its first change and its time.
    fileprivate func insert(_ mark: TransactionMark) -> PreparedStatement {
        guard let origin = mark.origin else {
            // This statement leaves out the columns that stay NULL.
            insertLocal.bind(3, optional: mark.author)
            insertLocal.bind(4, optional: mark.context)
            insertLocal.bind(5, optional: mark.process)
            return insertLocal
        }
        func bind(_ index: Int32, _ text: String?, unless known: String?) {
            switch (text, known) {
            case (nil, nil): return
            case (let text?, let known?) where text.hasBytes(of: known): return
            default: insertRemote.bind(index, optional: text)
            }
        }
        bind(3, mark.author, unless: bound.author)
        bind(4, mark.context, unless: bound.context)
        bind(5, mark.process, unless: bound.process)
        if origin.node != bound.origin?.node { insertRemote.bind(6, blob: origin.node) }
        insertRemote.bind(7, origin.sequence)
        bind(8, origin.author, unless: bound.origin?.author)
        insertRemote.bind(9, origin.timestamp)
        bind(10, origin.name, unless: bound.origin?.name)
        bound = mark
        return insertRemote
    }

    /// Returns the newest row of the log.
    package func newest() throws -> LogRow? {
        try last.first { LogRow(id: $0.integer(0), entity: $0.integer(1), time: $0.integer(2)) }
    }

    /// Reads the open changes without the write lock, so that the next holder of the lock doesn't have to. That takes a
    /// while if another program has written a million rows at once. Call this just before taking the lock, in a read
    /// transaction.
    package func lookAhead() throws {
        scan = nil
        guard let last = try newest(), last.entity != 0 else { return }
        scan = (try newestMark(through: last.id), last.id)
    }

    /// Returns the newest mark of the log, whose newest row is `last`. 0 if there is none.
    fileprivate func newestMark(through last: Int64) throws -> Int64 {
        // Rows of the log are never changed. If it ends before the scanned rows, another file has been put in place.
        let known = scan.flatMap { $0.through <= last ? $0 : nil } ?? (mark: 0, through: 0)
        scan = nil
        markAfter.bind(1, known.through)
        return try markAfter.first { $0.integer(0) } ?? known.mark
    }

    /// Returns whether catalog and triggers know the current schema.
    ///
    /// - Parameter isBeginning: True if this transaction has written nothing yet, so that the result can't be rolled
    ///   back.
    func isSchemaFollowed(isBeginning: Bool) throws -> Bool {
        let version = try currentSchemaVersion()
        if version == knownVersion { return true }
        guard try followedVersion.first({ $0.optionalInteger(0) }) ?? nil == version else { return false }
        if isBeginning { knownVersion = version }
        return true
    }

    package func currentSchemaVersion() throws -> Int64? {
        try schemaVersion.first { $0.integer(0) }
    }
}
