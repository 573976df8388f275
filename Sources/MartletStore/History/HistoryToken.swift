public import Foundation
package import GRDB

/// A position in the history of one store, just after a transaction.
///
/// Tokens of one store have the order of their transactions. A token is opaque: pass it back to the store that it came
/// from.
public struct HistoryToken: Sendable, Hashable, Codable, Comparable, CustomStringConvertible, LosslessStringConvertible
{
    /// The identifier of the store that the token belongs to.
    public let store: UUID
    package let transaction: Int64

    package init(store: UUID, transaction: Int64) {
        self.store = store
        self.transaction = transaction
    }

    /// - Throws: ``/MartletCore/StoreError`` with code `.historyTokenExpired` if the token belongs to another store, or
    ///   to a later state of the file than this one.
    package func checkIsOf(_ store: UUID, _ db: Database) throws {
        guard self.store == store else {
            throw StoreError(
                .historyTokenExpired, "The history token belongs to another store.",
                hint: "Read this store's history from the beginning, and keep the token of the last transaction read.")
        }
        try checkIsNotAhead(db)
    }

    /// - Throws: ``/MartletCore/StoreError`` with code `.historyTokenExpired` if the token belongs to a later state of
    ///   the file than this one. The newest mark always stays in the log, so no token of this state is ahead of it.
    func checkIsNotAhead(_ db: Database) throws {
        let last = try Int64.fetchOne(db, sql: "SELECT coalesce(max(id), 0) FROM \(InternalName.log)") ?? 0
        guard transaction > last else { return }
        throw StoreError(
            .historyTokenExpired, "The history token is newer than the store: an older copy of the file was restored.",
            hint: "Read the current rows, and continue from the newest token.")
    }

    /// - Throws: ``/MartletCore/StoreError`` with code `.historyTokenExpired` if the token belongs to another store, or
    ///   to a later state of the file than this one, or if history after it has been deleted.
    func checkIsAvailable(_ store: UUID, _ db: Database) throws {
        try checkIsOf(store, db)
        guard transaction >= (try Meta.integer(db, MetaKey.prunedThrough) ?? 0) else {
            throw StoreError(
                .historyTokenExpired, "The history after this token has been deleted.",
                hint:
                    """
                    Read the current rows, and continue from the newest token. Use a named cursor to keep history from \
                    being deleted.
                    """
            )
        }
    }

    /// Returns the newest transaction, 0 if there is none.
    static func newestTransaction(_ db: Database) throws -> Int64 {
        try Int64.fetchOne(db, sql: "SELECT id FROM \(InternalName.log) WHERE e = 0 ORDER BY id DESC LIMIT 1") ?? 0
    }

    /// Creates a token from its ``description``. Nil for any other text.
    public init?(_ description: String) {
        let parts = description.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let store = UUID(uuidString: String(parts[0])), let id = Int64(parts[1]), id >= 0 else {
            return nil
        }
        self.init(store: store, transaction: id)
    }

    public var description: String { "\(store.uuidString):\(transaction)" }

    /// Earlier transactions come first. Tokens of different stores are ordered by store.
    public static func < (a: HistoryToken, b: HistoryToken) -> Bool {
        a.store == b.store ? a.transaction < b.transaction : a.store.uuidString < b.store.uuidString
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let token = HistoryToken(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "This is not a history token.")
        }
        self = token
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}
