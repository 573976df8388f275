import MartletCore
package import MartletBus

/// Opens what nodes have sealed: for whoever looks at a topic from outside, and has the keys.
package struct TopicReader: Sendable {
    private let messageGuard: MessageGuard
    private let topic: String

    /// - Throws: what the source of keys throws.
    package init(topic: String, _ security: MessageSecurity) throws {
        self.topic = topic
        messageGuard = try MessageGuard(security)
    }

    /// The payload as it was before it was sealed.
    ///
    /// - Throws: an error that says why it can't be opened.
    package func payload(of message: OutgoingMessage) throws -> [UInt8] {
        let incoming = IncomingMessage(
            position: PartitionPosition(partition: 0, offset: 0), key: message.key, headers: message.headers,
            payload: message.payload, timestamp: 0, isBrokerTimestamp: false)
        return try messageGuard.open(incoming, topic: topic, node: .none).payload
    }
}
