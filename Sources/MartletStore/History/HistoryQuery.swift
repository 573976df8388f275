public import Foundation

/// Which transactions to fetch. The defaults fetch all, oldest first.
public struct HistoryQuery: Sendable {
    public enum AuthorFilter: Sendable, Equatable {
        case equal(String)
        /// Everything but this author. Transactions without an author are included.
        case notEqual(String)
        /// Only transactions without an author.
        case absent
    }

    /// Only transactions after this one.
    public var after: HistoryToken?
    /// Only transactions up to this one, which is included.
    public var through: HistoryToken?
    public var author: AuthorFilter?
    /// Only transactions that change one of these tables. Their other changes are fetched too. Empty: any.
    public var entities: [String] = []
    /// Only transactions at this time or later.
    public var since: Date?
    /// Only transactions before this time.
    public var before: Date?
    public var newestFirst = false
    /// The most transactions to fetch. Absent: all.
    public var limit: Int?

    public init(after: HistoryToken? = nil, author: AuthorFilter? = nil) {
        self.after = after
        self.author = author
    }
}
