public import MartletStore

/// The author of what was applied from other nodes: `TransactionAuthor.sync`.
public typealias TransactionAuthor = MartletStore.TransactionAuthor
/// Where a transaction that came from another node was made.
public typealias HistoryOrigin = MartletStore.HistoryOrigin

/// What was committed together.
public protocol HistoryTransaction {
    associatedtype Token: Codable & Comparable & Sendable
    associatedtype TransactionIdentifier: Codable & Comparable & Hashable & Sendable

    var author: String? { get }
    var changes: [HistoryChange] { get }
    var storeIdentifier: String { get }
    var timestamp: Date { get }
    var token: Token { get }
    var transactionIdentifier: TransactionIdentifier { get }
}

/// A transaction of a container's store: one save, or what another program or node wrote.
public struct DefaultHistoryTransaction: HistoryTransaction {
    public let author: String?
    /// In the order in which they were made. Rows of tables that are no models are left out.
    public let changes: [HistoryChange]
    /// Name and number of the process. Empty for programs that know nothing of Martlet.
    public let processIdentifier: String
    public let storeIdentifier: String
    public let timestamp: Date
    public let token: DefaultHistoryToken
    /// Ascends with every transaction of the store.
    public let transactionIdentifier: Int64
    /// Where it was made, when it came from another node.
    public let origin: HistoryOrigin?
}

/// A bookmark in the history of one store: just after a transaction. Ordered as the transactions are.
public struct DefaultHistoryToken: Comparable, Hashable, Codable, Sendable {
    let token: MartletStore.HistoryToken

    public static func < (a: DefaultHistoryToken, b: DefaultHistoryToken) -> Bool { a.token < b.token }

    init(_ token: MartletStore.HistoryToken) { self.token = token }

    public init(from decoder: any Decoder) throws {
        token = try decoder.singleValueContainer().decode(MartletStore.HistoryToken.self)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(token)
    }
}
