/// The origin of an applied transaction.
package struct TransactionOrigin: Sendable {
    package var node: [UInt8]
    package var sequence: Int64
    package var author: String?
    package var timestamp: Int64
    package var name: String?

    package init(node: [UInt8], sequence: Int64, author: String?, timestamp: Int64, name: String?) {
        self.node = node
        self.sequence = sequence
        self.author = author
        self.timestamp = timestamp
        self.name = name
    }
}
