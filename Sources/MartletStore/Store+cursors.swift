public import Foundation
package import GRDB

/// A named, durable position of a reader of the history.
public struct HistoryCursor: Sendable, Equatable {
    public var name: String
    public var token: HistoryToken
    /// When it was last moved.
    public var updated: Date
}

/// What `deleteHistory` did.
public struct PruneReport: Sendable, Equatable {
    /// How many changes and transaction marks were deleted.
    public var deletedCount: Int
    /// History after this token is still there.
    public var deletedThrough: HistoryToken
    /// The cursor that kept more from being deleted, if one did.
    public var heldBackBy: String?
    /// What to do where that cursor is not going to move on.
    public var hint: String?
}

extension Store {
    /// The registered cursors, by name.
    public func cursors() throws -> [HistoryCursor] {
        try read { db in
            try Row.fetchAll(db, sql: "SELECT * FROM \(InternalName.cursors) ORDER BY name").map {
                HistoryCursor(
                    name: $0["name"], token: HistoryToken(store: identifier, transaction: $0["position"]),
                    updated: HistoryReader.date($0["updated"]))
            }
        }
    }

    /// Registers a cursor, or moves it. History that it has not passed is not deleted. A token of nil stands before the
    /// first transaction.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.historyTokenExpired` for a token of another store, or of a
    ///   later state of this one.
    public func setCursor(_ name: String, to token: HistoryToken?) throws {
        if let token, token.store != identifier {
            throw StoreError(.historyTokenExpired, "The history token belongs to another store.")
        }
        try writeOwnTables { db in
            try token?.checkIsNotAhead(db)
            try Cursors.set(db, name, token?.transaction ?? 0)
        }
    }

    /// Forgets a cursor. Returns false where there was none of that name.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` for the publisher's: what it has not passed
    ///   has yet to be published.
    @discardableResult
    public func removeCursor(_ name: String) throws -> Bool {
        guard name != Cursors.publisher else {
            throw StoreError(
                .invalidArgument,
                "The cursor \(name) is the publisher's and can't be removed: what follows it is not published yet.",
                hint: "Run an agent on the store: it moves the cursor as the broker acknowledges transactions.")
        }
        return try writeOwnTables { db in
            try db.execute(sql: "DELETE FROM \(InternalName.cursors) WHERE name = ?", arguments: [name])
            return db.changesCount > 0
        }
    }

    /// Deletes history up to this token, the transaction of the token included, as far as every cursor has passed it.
    ///
    /// What no sync engine has registered yet is never published afterwards.
    /// - Throws: ``/MartletCore/StoreError`` with code `.historyTokenExpired` for a token of another store.
    @discardableResult
    public func deleteHistory(through token: HistoryToken) throws -> PruneReport {
        guard token.store == identifier else {
            throw StoreError(.historyTokenExpired, "The history token belongs to another store.")
        }
        return try deleteHistory { _ in token.transaction }
    }

    /// Deletes history up to the first transaction at this time or later, as far as every cursor has passed it.
    @discardableResult
    public func deleteHistory(before date: Date) throws -> PruneReport {
        try deleteHistory { try Pruner.mark($0, before: HistoryReader.milliseconds(date)) }
    }

    /// Deletes the transactions that a condition holds for, wherever in the history they are, as far as every cursor
    /// has passed them.
    ///
    /// Whoever goes on from a token before a deleted transaction isn't told that it is missing. What no
    /// sync engine has registered yet, up to the last of them, is never published afterwards.
    @discardableResult
    package func deleteHistory(where clause: (HistoryNames) throws -> HistoryClause) throws -> PruneReport {
        try requireWritable()
        try sealForeignTransactions()
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

    /// Each part is a transaction of its own.
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
            // Between two transactions others write.
            Thread.sleep(forTimeInterval: Self.pruningRest)
        }
    }

    /// For how long others have the write lock between two parts of a deletion.
    private static let pruningRest = 0.025
}

/// The cursors' table, for whoever is in a transaction already.
package enum Cursors {
    /// The publisher's: transactions up to it were acknowledged by the broker, or are not for it.
    package static let publisher = "martlet.publisher"

    /// What to do about a cursor that keeps history from being deleted.
    static func hint(_ name: String, store path: String) -> String {
        name == publisher
            ? "Run an agent on the store: it publishes the rest."
            : "If its program is gone for good, run `martlet history cursors \(quoted(path)) --remove \(quoted(name)) --yes`."
    }

    /// As one word of a shell.
    private static func quoted(_ word: String) -> String {
        let plain = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/:@")
        let isPlain = !word.isEmpty && word.allSatisfy(plain.contains)
        return isPlain ? word : "'\(word.replacingOccurrences(of: "'", with: "'\\''"))'"
    }

    package static func set(_ db: Database, _ name: String, _ position: Int64) throws {
        try db.cachedStatement(
            sql: """
                INSERT INTO \(InternalName.cursors)(name, position, updated) VALUES (?, ?, ?)
                ON CONFLICT DO UPDATE SET position = excluded.position, updated = excluded.updated
                """
        ).execute(arguments: [name, position, HistoryReader.milliseconds(Date())])
    }

    package static func position(_ db: Database, _ name: String) throws -> Int64? {
        try Int64.fetchOne(db, sql: "SELECT position FROM \(InternalName.cursors) WHERE name = ?", arguments: [name])
    }
}
