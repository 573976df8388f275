import MartletStore

/// A bookmark in the history of one store.
public protocol HistoryToken: Comparable, Codable, Hashable, Identifiable, Sendable {
    associatedtype TokenType: Codable, Hashable, Sendable

    /// The store to which the token belongs.
    var storeIdentifier: String { get }
    var tokenValue: TokenType? { get }
}

/// A bookmark in the history of one store, just after a transaction. Tokens are ordered like the transactions.
public struct DefaultHistoryToken: HistoryToken {
    let token: MartletStore.HistoryToken

    public var storeIdentifier: String { token.store.uuidString }
    /// The number of the transaction, keyed by the store's identifier.
    public var tokenValue: [String: Int64]? { [storeIdentifier: token.transaction] }
    /// The number of the transaction.
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
