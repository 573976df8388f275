public import Foundation

/// Selects the transactions to fetch. The defaults fetch all, oldest first.
public struct HistoryQuery: Sendable {
    public enum AuthorFilter: Sendable, Equatable {
        case equal(String)
        /// Every author but this one. Transactions without an author are included.
        case notEqual(String)
        /// Only transactions without an author.
        case absent
    }

    /// Only transactions after this one.
    public var after: HistoryToken?
    /// Only transactions up to and including this one.
    public var through: HistoryToken?
    public var author: AuthorFilter?
    /// Only transactions that change one of these tables. Their changes of other tables are fetched too. Empty means
    /// any table.
    public var entities: [String] = []
    /// Only transactions at this time or later.
    public var since: Date?
    /// Only transactions before this time.
    public var before: Date?
    public var newestFirst = false
    /// The maximum number of transactions to fetch. Nil means all.
    public var limit: Int?

    public init(after: HistoryToken? = nil, author: AuthorFilter? = nil) {
        self.after = after
        self.author = author
    }
}
