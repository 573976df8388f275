/// A bookmark in the history of one store.
public protocol HistoryToken: Comparable, Codable, Hashable, Identifiable, Sendable {
    associatedtype TokenType: Codable & Hashable & Sendable

    /// The store that the token is of.
    var storeIdentifier: String { get }
    var tokenValue: TokenType? { get }
}
