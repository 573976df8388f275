/// Identifies the last message that was read of a partition: if another one is in its place later, this is another log.
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
