import MartletCore
package import MartletBus

/// Decrypts messages of nodes, for tools that inspect a topic from outside and have the keys.
package struct TopicReader: Sendable {
    private let messageGuard: MessageGuard
    private let topic: String

    /// - Throws: `StoreError` if the configuration is invalid, and any error of the key source.
    package init(topic: String, _ security: MessageSecurity) throws {
        self.topic = topic
        messageGuard = try MessageGuard(security)
    }

    /// Returns the decrypted payload.
    ///
    /// - Throws: an error that says why the message can't be verified or decrypted.
    package func payload(of message: OutgoingMessage) throws -> [UInt8] {
        let incoming = IncomingMessage(
            position: PartitionPosition(partition: 0, offset: 0), key: message.key, headers: message.headers,
            payload: message.payload, timestamp: 0, isBrokerTimestamp: false)
        return try messageGuard.open(incoming, topic: topic, node: .none).payload
    }
}
