extension KafkaConfiguration {
    /// Whether clients log in, as far as the properties that they are made with say.
    var logsIn: Bool {
        let raw = properties["security.protocol"].flatMap { KafkaSecurityProtocol(rawValue: $0.lowercased()) }
        return (raw ?? securityProtocol).usesSASL
    }

    /// The properties of a producer, in the order in which to set them.
    ///
    /// - Parameter maxBatchBytes: what the topic takes at once, where that is known: a broker refuses a whole batch that is larger than the topic's
    ///   `max.message.bytes`.
    func producerProperties(maxBatchBytes: Int? = nil) -> [(name: String, value: String)] {
        var list = commonProperties()
        list.append(("linger.ms", linger.millisecondsText))
        list.append(("compression.codec", compression.rawValue))
        list.append(("queue.buffering.max.kbytes", "\(producerQueueBytes >> 10)"))
        list.append(("message.timeout.ms", deliveryTimeout?.millisecondsText ?? "0"))
        list.append(("partitioner", "murmur2_random"))
        // A typing mistake in a topic's name must not make a topic, nor must one that was deleted come back with other settings.
        list.append(("allow.auto.create.topics", "false"))
        if let maxBatchBytes { list.append(("batch.size", "\(maxBatchBytes)")) }
        list += rawProperties()
        list.append(("enable.idempotence", "true"))
        list.append(("enable.gapless.guarantee", "true"))
        list.append(("acks", "all"))
        if properties["max.in.flight"] == nil && properties["max.in.flight.requests.per.connection"] == nil {
            list.append(("max.in.flight", "5"))
        }
        return list
    }

    /// The properties of a consumer, and of a client that only asks for metadata.
    func consumerProperties() -> [(name: String, value: String)] {
        var list = commonProperties()
        list.append(("group.id", consumerGroup))
        list.append(("queued.max.messages.kbytes", "\(consumerQueueBytes >> 10)"))
        list.append(("fetch.wait.max.ms", fetchWaitMax.millisecondsText))
        // Without a group to be in, this is only how long published progress waits for the group's broker, and so how
        // long closing can take while no broker is there.
        list.append(("session.timeout.ms", "1000"))
        // A typing mistake in a topic's name must not make a topic.
        list.append(("allow.auto.create.topics", "false"))
        // Nodes use no transactions of Kafka's. One that a stranger leaves open holds up nobody (docs/decisions/0046).
        list.append(("isolation.level", "read_uncommitted"))
        list += rawProperties()
        list.append(("enable.auto.commit", "false"))
        list.append(("enable.auto.offset.store", "false"))
        list.append(("auto.offset.reset", "error"))
        list.append(("enable.partition.eof", "true"))
        return list
    }

    private func commonProperties() -> [(name: String, value: String)] {
        var list = [
            (name: "bootstrap.servers", value: bootstrapServers.joined(separator: ",")),
            ("client.id", clientID ?? consumerGroup),
            ("security.protocol", securityProtocol.rawValue),
            ("message.max.bytes", "\(messageMaxBytes)"),
            ("statistics.interval.ms", statisticsInterval.millisecondsText),
        ]
        if securityProtocol.usesSASL, let credentials {
            list.append(("sasl.mechanism", credentials.mechanism))
            if credentials.tokenFile == nil {
                list.append(("sasl.username", credentials.username))
                list.append(("sasl.password", credentials.password.value))
            }
        }
        if securityProtocol.usesTLS {
            if let path = tls.caLocation { list.append(("ssl.ca.location", path)) }
            if let path = tls.certificateLocation { list.append(("ssl.certificate.location", path)) }
            if let path = tls.keyLocation { list.append(("ssl.key.location", path)) }
            if let password = tls.keyPassword { list.append(("ssl.key.password", password.value)) }
        }
        return list
    }

    private func rawProperties() -> [(name: String, value: String)] {
        properties.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) }
    }
}
