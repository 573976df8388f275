/// A transaction as it is sent to the topic.
package struct OutboxEntry: Sendable {
    package var sequence: Int64
    /// Empty if the payload is stored in parts; see ``/MartletEngine/OutboxReader/open(_:)``.
    package var payload: [UInt8]
    /// The context that the author gave the transaction, if requested and still in the history.
    package var context: String?

    package init(sequence: Int64, payload: [UInt8], context: String? = nil) {
        self.sequence = sequence
        self.payload = payload
        self.context = context
    }
}
