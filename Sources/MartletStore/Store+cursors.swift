public import Foundation
package import GRDB

/// The named, durable position of a history reader.
public struct HistoryCursor: Sendable, Equatable {
    public var name: String
    public var token: HistoryToken
    /// When the cursor was last moved.
    public var updated: Date
}

/// The result of `deleteHistory`.
public struct PruneReport: Sendable, Equatable {
    /// The number of deleted changes and transaction marks.
    public var deletedCount: Int
    /// The history after this token is still available.
    public var deletedThrough: HistoryToken
    /// The cursor that prevented more from being deleted, if any.
    public var heldBackBy: String?
    /// The operator's next step if that cursor does not advance by itself.
    public var hint: String?
}

extension Store {
    /// Returns the registered cursors, ordered by name.
    public func cursors() throws -> [HistoryCursor] {
        try read { db in
            try Row.fetchAll(db, sql: "SELECT * FROM \(InternalName.cursors) ORDER BY name").map {
                HistoryCursor(
                    name: $0["name"], token: HistoryToken(store: identifier, transaction: $0["position"]),
                    updated: HistoryReader.date($0["updated"]))
            }
        }
    }

    /// Registers a cursor, or moves it. History that the cursor has not passed is not deleted. A nil token is the
    /// position before the first transaction.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.historyTokenExpired` if the token belongs to another store, or
    ///   to a later state of this one; `.invalidArgument` for the name of a cursor of Martlet itself, which begins with
    ///   `martlet.`.
    public func setCursor(_ name: String, to token: HistoryToken?) throws {
        try Cursors.checkIsNotReserved(name)
        if let token, token.store != identifier {
            throw StoreError(.historyTokenExpired, "The history token belongs to another store.")
        }
        try writeOwnTables { db in
            try token?.checkIsNotAhead(db)
            try Cursors.set(db, name, token?.transaction ?? 0)
        }
    }

    /// Removes a cursor. Returns false if there is no cursor of that name.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` for the publisher's cursor: the transactions
    ///   after it are still to be published.
    @discardableResult
    public func removeCursor(_ name: String) throws -> Bool {
        guard name != Cursors.publisher else {
            throw StoreError(
                .invalidArgument,
                "The publisher's cursor \(name) can't be removed: it keeps the history until it is published.",
                hint: "Run an agent on the store: it moves the cursor as the broker acknowledges transactions.")
        }
        return try writeOwnTables { db in
            try Cursors.remove(db, name)
            return db.changesCount > 0
        }
    }

    /// Returns the position of a reader that begins, and registers its cursor there.
    ///
    /// - Parameters:
    ///   - token: Where to begin, whatever the cursor says. Nil: at the cursor.
    ///   - first: Where to begin without a token and without a cursor of that name.
    /// - Throws: ``/MartletCore/StoreError`` with code `.historyTokenExpired`, and leaves the cursor as it is, if the
    ///   history after that position is not complete; `.invalidArgument` for a name that no reader may have.
    package func beginReading(
        _ name: String, at token: HistoryToken?, else first: HistoryToken
    ) throws -> HistoryToken {
        try Cursors.check(reader: name)
        return try writeOwnTables { db in
            let known = try Cursors.position(db, name).map { HistoryToken(store: identifier, transaction: $0) }
            let position = token ?? known ?? first
            try position.checkIsAvailable(identifier, db)
            if position != known { try Cursors.set(db, name, position.transaction) }
            return position
        }
    }

    /// Moves a cursor, if it is still where its reader left it.
    ///
    /// - Returns: False if it was moved or removed.
    package func moveCursor(_ name: String, from old: HistoryToken, to new: HistoryToken) throws -> Bool {
        try writeOwnTables { db in
            guard try Cursors.position(db, name) == old.transaction else { return false }
            try Cursors.set(db, name, new.transaction)
            return true
        }
    }

    /// Deletes history up to and including the token's transaction, as far as every cursor has passed it.
    ///
    /// Transactions that no sync engine has stamped yet are never published afterwards.
    /// - Throws: ``/MartletCore/StoreError`` with code `.historyTokenExpired` if the token belongs to another store.
    @discardableResult
    public func deleteHistory(through token: HistoryToken) throws -> PruneReport {
        guard token.store == identifier else {
            throw StoreError(.historyTokenExpired, "The history token belongs to another store.")
        }
        return try deleteHistory { _ in token.transaction }
    }

    /// Deletes the history before the first transaction at this time or later, as far as every cursor has passed it.
    @discardableResult
    public func deleteHistory(before date: Date) throws -> PruneReport {
        try deleteHistory { try Pruner.mark($0, before: HistoryReader.milliseconds(date)) }
    }

    /// Deletes the transactions that match a condition, wherever they are in the history, as far as every cursor has
    /// passed them.
    ///
    /// A reader that continues from a token before a deleted transaction isn't told that the transaction is missing.
    /// Changes up to the last deleted transaction that no sync engine has stamped yet are never published afterwards.
    @discardableResult
    package func deleteHistory(where clause: (HistoryNames) throws -> HistoryClause) throws -> PruneReport {
        try requireWritable()
        try closeForeignTransactions()
        var first: Int64 = 0
        return try deleteInParts { db in
            try Pruner.prune(db, try clause(HistoryNames(catalog: try Catalog.load(db))), from: &first)
        }
    }

    private func deleteHistory(through wanted: (Database) throws -> Int64) throws -> PruneReport {
        var mark: Int64?
        return try deleteInParts { db in
            let through = try mark ?? wanted(db)
            if mark == nil { try Pruner.append(db, freeing: through) }
            mark = through
            return try Pruner.prune(db, through: through)
        }
    }

    /// Runs each part in a transaction of its own.
    private func deleteInParts(_ part: (Database) throws -> Pruner.Outcome) throws -> PruneReport {
        try requireWritable()
        var count = 0
        while true {
            let pruned = try writeOwnTables(part)
            count += pruned.count
            guard pruned.hasMore else {
                return PruneReport(
                    deletedCount: count,
                    deletedThrough: HistoryToken(store: identifier, transaction: pruned.through),
                    heldBackBy: pruned.holder, hint: pruned.holder.map { Cursors.hint($0, store: path) })
            }
            // Lets other connections write between two transactions.
            Thread.sleep(forTimeInterval: Self.pruningRest)
        }
    }

    /// How long the write lock stays free between two parts of a deletion, in seconds.
    private static let pruningRest = 0.025
}

/// The table of cursors, for callers that are already in a transaction.
package enum Cursors {
    /// The publisher's cursor. The broker has acknowledged the transactions up to it, or they are not to be published.
    package static let publisher = "martlet.publisher"

    /// Martlet's own cursors have names that begin with this.
    private static let reserved = "martlet."
    private static let mostNameBytes = 200
    private static let nameHint = "Name the cursor after its reader, such as search-index."

    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` for a name that no reader may have.
    static func check(reader name: String) throws {
        guard !name.isEmpty, name.utf8.count <= mostNameBytes else {
            throw StoreError(
                .invalidArgument, "A cursor's name must have between 1 and \(mostNameBytes) bytes.", hint: nameHint)
        }
        guard name.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control }) else {
            throw StoreError(.invalidArgument, "A cursor's name must not contain control characters.", hint: nameHint)
        }
        try checkIsNotReserved(name)
    }

    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` for the name of a cursor of Martlet itself.
    static func checkIsNotReserved(_ name: String) throws {
        guard !name.hasPrefix(reserved) else {
            throw StoreError(
                .invalidArgument, "The cursor \(name) is one of Martlet's own: it can't be used by a reader.",
                hint: nameHint)
        }
    }

    /// Returns what to do about a cursor that prevents history from being deleted.
    static func hint(_ name: String, store path: String) -> String {
        name == publisher
            ? "Run an agent on the store: it publishes the rest."
            : "If its program is gone for good, run "
                + "`martlet history cursors remove \(ShellWord.quoted(path)) \(ShellWord.quoted(name))`."
    }

    package static func set(_ db: Database, _ name: String, _ position: Int64) throws {
        try db.cachedStatement(
            sql: """
                INSERT INTO \(InternalName.cursors)(name, position, updated) VALUES (?, ?, ?)
                ON CONFLICT DO UPDATE SET position = excluded.position, updated = excluded.updated
                """
        ).execute(arguments: [name, position, HistoryReader.milliseconds(Date())])
    }

    package static func remove(_ db: Database, _ name: String) throws {
        try db.execute(sql: "DELETE FROM \(InternalName.cursors) WHERE name = ?", arguments: [name])
    }

    package static func position(_ db: Database, _ name: String) throws -> Int64? {
        try Int64.fetchOne(db, sql: "SELECT position FROM \(InternalName.cursors) WHERE name = ?", arguments: [name])
    }
}
