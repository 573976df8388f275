public import MartletStore

/// Well-known authors. `TransactionAuthor.sync` is the author of transactions applied from other nodes.
public typealias TransactionAuthor = MartletStore.TransactionAuthor
/// The origin of a transaction that came from another node.
public typealias HistoryOrigin = MartletStore.HistoryOrigin

/// A set of changes that were committed together.
public protocol HistoryTransaction: Hashable, Identifiable, Sendable {
    associatedtype TokenType: Comparable, Hashable, Identifiable, Sendable
    associatedtype TransactionIdentifier: Comparable, Hashable, Sendable

    var author: String? { get }
    var changes: [HistoryChange] { get }
    var storeIdentifier: String { get }
    var timestamp: Date { get }
    var token: TokenType { get }
    var transactionIdentifier: TransactionIdentifier { get }
}

/// A transaction of a container's store: one save, or one transaction of another program or node.
public struct DefaultHistoryTransaction: HistoryTransaction {
    public typealias TokenType = DefaultHistoryToken
    public typealias TransactionIdentifier = Int64

    public let author: String?
    /// In the order in which they were made. Rows of tables that aren't models are omitted.
    public let changes: [HistoryChange]
    /// Name and number of the process. Empty for programs that don't use Martlet.
    public let processIdentifier: String
    public let storeIdentifier: String
    public let timestamp: Date
    public let token: DefaultHistoryToken
    /// The number of the transaction, which increases with every transaction of the store.
    public let transactionIdentifier: Int64
    /// The origin, if the transaction came from another node. Not in SwiftData.
    public let origin: HistoryOrigin?

    public var id: Int64 { transactionIdentifier }
    /// The name of the program, in place of a bundle identifier. Empty for programs that don't use Martlet.
    public var bundleIdentifier: String { String(processIdentifier.prefix { $0 != "[" }) }

    /// Returns true for the same transaction of the same store, however often it was fetched.
    public static func == (a: DefaultHistoryTransaction, b: DefaultHistoryTransaction) -> Bool { a.token == b.token }
    public func hash(into hasher: inout Hasher) { hasher.combine(token) }
}
