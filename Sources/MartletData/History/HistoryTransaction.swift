public import MartletStore

/// The author of what was applied from other nodes: `TransactionAuthor.sync`.
public typealias TransactionAuthor = MartletStore.TransactionAuthor
/// Where a transaction that came from another node was made.
public typealias HistoryOrigin = MartletStore.HistoryOrigin

/// What was committed together.
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

/// A transaction of a container's store: one save, or what another program or node wrote.
public struct DefaultHistoryTransaction: HistoryTransaction {
    public typealias TokenType = DefaultHistoryToken
    public typealias TransactionIdentifier = Int64

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
    /// Where it was made, when it came from another node. Not in SwiftData.
    public let origin: HistoryOrigin?

    public var id: Int64 { transactionIdentifier }
    /// The name of the program, in place of a bundle's identifier. Empty for programs that know nothing of Martlet.
    public var bundleIdentifier: String { String(processIdentifier.prefix { $0 != "[" }) }

    /// True for one transaction of one store, however often it was fetched.
    public static func == (a: DefaultHistoryTransaction, b: DefaultHistoryTransaction) -> Bool { a.token == b.token }
    public func hash(into hasher: inout Hasher) { hasher.combine(token) }
}
