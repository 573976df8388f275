extension KafkaConfiguration {
    /// Whether clients log in, as far as the properties that they are made with say.
    var logsIn: Bool {
        let raw = properties["security.protocol"].flatMap { KafkaSecurityProtocol(rawValue: $0.lowercased()) }
        return (raw ?? securityProtocol).usesSASL
    }

    /// The name that clients log in with. Nil where that is a certificate's, or a token's.
    public var user: String? {
        let name = properties["sasl.username"] ?? credentials?.username
        return name.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The properties of a producer, in the order in which to set them.
    ///
    /// - Parameter maxBatchBytes: what the topic takes at once, where that is known: a broker refuses a whole batch
    ///   that is larger than the topic's `max.message.bytes`.
    func producerProperties(maxBatchBytes: Int? = nil) -> [(name: String, value: String)] {
        var list = commonProperties()
        list.append(("linger.ms", linger.millisecondsText))
        list.append(("compression.codec", compression.rawValue))
        list.append(("queue.buffering.max.kbytes", "\(producerQueueBytes >> 10)"))
        list.append(("message.timeout.ms", deliveryTimeout?.millisecondsText ?? "0"))
        list.append(("partitioner", "murmur2_random"))
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

    /// The properties of a producer that is only told whether it may write.
    func proberProperties() -> [(name: String, value: String)] {
        var list = commonProperties()
        list.append(("message.timeout.ms", "10000"))
        list += rawProperties()
        list.append(("enable.idempotence", "false"))
        list.append(("enable.gapless.guarantee", "false"))
        // A number that there is not. Kafka refuses it once it knows that the sender may write, and stores nothing.
        list.append(("acks", "2"))
        return list
    }

    /// Whether a consumer that has caught up waits longer than before.
    var waitsLongerWhenIdle: Bool { idleFetchWaitMax > fetchWaitMax && properties["fetch.wait.max.ms"] == nil }

    /// The properties of a consumer, and of a client that only asks.
    ///
    /// - Parameter isPatient: for a consumer that has caught up.
    func consumerProperties(isPatient: Bool = false) -> [(name: String, value: String)] {
        var list = commonProperties()
        list.append(("queued.max.messages.kbytes", "\(consumerQueueBytes >> 10)"))
        list.append(("fetch.wait.max.ms", (isPatient ? idleFetchWaitMax : fetchWaitMax).millisecondsText))
        if isPatient {
            // librdkafka wants it to be more than the wait, and adds both: so long a link that died in silence goes
            // unnoticed.
            list.append(("socket.timeout.ms", (idleFetchWaitMax + .seconds(1)).millisecondsText))
        }
        // How many partitions there are is read from the statistics.
        if statisticsInterval == .zero { list.append(("statistics.interval.ms", "60000")) }
        // Nodes use no transactions of Kafka's. One that a stranger leaves open holds up nobody (docs/decisions/0046).
        list.append(("isolation.level", "read_uncommitted"))
        // In no group: nothing that concerns one may hold up reading.
        list += rawProperties().filter { $0.name != "group.id" }
        list.append(("enable.auto.commit", "false"))
        list.append(("enable.auto.offset.store", "false"))
        list.append(("auto.offset.reset", "error"))
        list.append(("enable.partition.eof", "true"))
        return list
    }

    /// The properties of a client that stores offsets of a group.
    func committerProperties(group: String) -> [(name: String, value: String)] {
        var list = commonProperties()
        list.append(("group.id", group))
        // Nobody joins the group: this is only how long offsets wait for the broker that looks after it, and so how
        // long closing can take while none is there.
        list.append(("session.timeout.ms", "1000"))
        list += rawProperties()
        // It comes and goes: that it is not connected says nothing.
        list.append(("statistics.interval.ms", "0"))
        list.append(("enable.auto.commit", "false"))
        list.append(("enable.auto.offset.store", "false"))
        return list
    }

    private func commonProperties() -> [(name: String, value: String)] {
        var list = [
            (name: "bootstrap.servers", value: bootstrapServers.joined(separator: ",")),
            ("client.id", clientID ?? "martlet.\(node)"),
            ("security.protocol", securityProtocol.rawValue),
            ("message.max.bytes", "\(messageMaxBytes)"),
            ("statistics.interval.ms", statisticsInterval.millisecondsText),
            // A typing mistake in a topic's name must not make a topic, nor must one that was deleted come back with
            // other settings.
            ("allow.auto.create.topics", "false"),
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
