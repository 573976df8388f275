public import MartletStore

/// The author of what was applied from other nodes: `TransactionAuthor.sync`.
public typealias TransactionAuthor = MartletStore.TransactionAuthor
/// Where a transaction that came from another node was made.
public typealias HistoryOrigin = MartletStore.HistoryOrigin

/// What was committed together.
public protocol HistoryTransaction: Hashable, Identifiable, Sendable {
    associatedtype TokenType: Comparable & Hashable & Identifiable & Sendable
    associatedtype TransactionIdentifier: Comparable & Hashable & Sendable

    var author: String? { get }
    var changes: [HistoryChange] { get }
    var storeIdentifier: String { get }
    var timestamp: Date { get }
    var token: TokenType { get }
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

    public var id: DefaultHistoryToken { token }

    /// Two are equal when they are the same transaction of the same store.
    public static func == (a: Self, b: Self) -> Bool { a.token == b.token }
    public func hash(into hasher: inout Hasher) { hasher.combine(token) }
}

/// A bookmark in the history of one store: just after a transaction. Ordered as the transactions are.
public struct DefaultHistoryToken: HistoryToken {
    let token: MartletStore.HistoryToken

    public var storeIdentifier: String { token.store.uuidString }
    /// The number of the transaction, by its store.
    public var tokenValue: [String: Int64]? { [storeIdentifier: token.transaction] }
    public var id: Int { Int(token.transaction) }

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
