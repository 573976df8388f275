/// Identifies the last message read from a partition. If its offset later has another message, the log was replaced.
package struct LastMessage: Sendable, Equatable {
    package let offset: Int64
    private let timestamp: Int64
    private let headers: [MessageHeader]

    package init(_ message: IncomingMessage) {
        offset = message.position.offset
        timestamp = message.timestamp
        headers = message.headers
    }
}
