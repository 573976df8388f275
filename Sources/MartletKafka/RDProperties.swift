/// Facts about librdkafka's properties, by name.
enum RDProperties {
    /// Properties that an operator may not set, and why.
    static let refused: [String: String] = [
        "enable.idempotence": "without it, retries duplicate and reorder messages",
        "enable.gapless.guarantee": "without it, messages are stored behind one that failed",
        "acks": "an acknowledged message must be on every in-sync replica",
        "request.required.acks": "an acknowledged message must be on every in-sync replica",
        "delivery.report.only.error": "the publisher counts on every acknowledgement",
        "partitioner": "all messages of a node must be in one partition, or they are read in another order",
        "queuing.strategy": "messages must be sent in their order",
        "enabled_events": "the publisher counts on every acknowledgement",
        "transactional.id": "the bus does not use Kafka's transactions",
        "enable.auto.commit": "offsets live in the store, not in the broker",
        "auto.commit.enable": "offsets live in the store, not in the broker",
        "enable.auto.offset.store": "offsets live in the store, not in the broker",
        "auto.offset.reset": "a lost position must be reported, never be skipped silently",
        "enable.partition.eof": "the consumer learns from it that it has caught up",
    ]

    /// Returns whether the value of this property must not be printed.
    static func isSecret(_ name: String) -> Bool {
        name.contains("password") || name.contains("secret") || name.hasSuffix(".pem") || name.contains("jaas")
            || name == "sasl.oauthbearer.config"
    }
}
