public import Foundation
package import GRDB

/// A position in the history of one store: just after a transaction.
///
/// Tokens of one store are ordered as their transactions are. Opaque: pass it back to the store that it came from.
public struct HistoryToken: Sendable, Hashable, Codable, Comparable, CustomStringConvertible, LosslessStringConvertible
{
    /// The store that the token is of.
    public let store: UUID
    package let transaction: Int64

    package init(store: UUID, transaction: Int64) {
        self.store = store
        self.transaction = transaction
    }

    /// - Throws: ``/MartletCore/StoreError`` with code `.historyTokenExpired` where the token is of another store, or
    ///   of a later state of the file than this one.
    package func checkIsOf(_ store: UUID, _ db: Database) throws {
        guard self.store == store else {
            throw StoreError(
                .historyTokenExpired, "The history token belongs to another store.",
                hint: "Read this store's history from the beginning, and keep the token of the last transaction read.")
        }
        try checkIsNotAhead(db)
    }

    /// - Throws: ``/MartletCore/StoreError`` with code `.historyTokenExpired` where the token is of a later state of
    ///   the file than this one. There is always the newest mark of the log: nothing that was there is ahead of it.
    func checkIsNotAhead(_ db: Database) throws {
        let last = try Int64.fetchOne(db, sql: "SELECT coalesce(max(id), 0) FROM \(InternalName.log)") ?? 0
        guard transaction > last else { return }
        throw StoreError(
            .historyTokenExpired, "The history token is newer than the store: an older copy of the file was restored.",
            hint: "Read the current rows, and continue from the newest token.")
    }

    /// A token from its ``description``. Nil for any other text.
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
