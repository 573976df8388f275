extension KafkaConfiguration {
    /// Whether clients log in, according to the properties that they are created with.
    var logsIn: Bool {
        let raw = properties["security.protocol"].flatMap { KafkaSecurityProtocol(rawValue: $0.lowercased()) }
        return (raw ?? securityProtocol).usesSASL
    }

    /// The user name that clients log in with. Nil if a certificate or a token supplies the name.
    public var user: String? {
        let name = properties["sasl.username"] ?? credentials?.username
        return name.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The properties of a producer, in the order in which to set them.
    ///
    /// - Parameter maxBatchBytes: the batch size that the topic accepts, if known. A broker rejects a whole batch that
    ///   is larger than the topic's `max.message.bytes`.
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

    /// The properties of a producer that only tests whether it may write.
    func proberProperties() -> [(name: String, value: String)] {
        var list = commonProperties()
        list.append(("message.timeout.ms", "10000"))
        list += rawProperties()
        list.append(("enable.idempotence", "false"))
        list.append(("enable.gapless.guarantee", "false"))
        // An invalid number of acknowledgements. Kafka rejects it after it has checked the right to write, and stores
        // nothing.
        list.append(("acks", "2"))
        return list
    }

    /// Whether a consumer that has caught up lets the broker hold fetches for longer.
    var waitsLongerWhenIdle: Bool { idleFetchWaitMax > fetchWaitMax && properties["fetch.wait.max.ms"] == nil }

    /// The properties of a consumer, and of a client that only makes requests.
    ///
    /// - Parameter isPatient: true for the client of a consumer that has caught up.
    package func consumerProperties(isPatient: Bool = false) -> [(name: String, value: String)] {
        var list = commonProperties()
        list.append(("queued.max.messages.kbytes", "\(consumerQueueBytes >> 10)"))
        list.append(("fetch.wait.max.ms", (isPatient ? idleFetchWaitMax : fetchWaitMax).millisecondsText))
        if isPatient {
            // librdkafka requires the timeout to exceed the wait, and adds both. A connection that dies silently goes
            // unnoticed for as long as that sum.
            list.append(("socket.timeout.ms", (idleFetchWaitMax + .seconds(1)).millisecondsText))
        }
        // The number of partitions is read from the statistics.
        if statisticsInterval == .zero { list.append((Self.statisticsName, "60000")) }
        // Nodes don't use Kafka transactions. So a transaction that another client leaves open must not delay reading
        // (docs/decisions/0046).
        list.append(("isolation.level", "read_uncommitted"))
        // The client is in no consumer group, so that no problem with a group can delay reading.
        list += rawProperties().filter { $0.name != "group.id" }
        // If there are none, or hardly any, partitions that are added to the topic are not noticed.
        if let interval = properties[Self.statisticsName].flatMap({ Int($0) }), !(1...60_000).contains(interval) {
            list.append((Self.statisticsName, "60000"))
        }
        list.append(("enable.auto.commit", "false"))
        list.append(("enable.auto.offset.store", "false"))
        list.append(("auto.offset.reset", "error"))
        list.append(("enable.partition.eof", "true"))
        return list
    }

    /// The properties of a client that stores a group's offsets.
    func committerProperties(group: String) -> [(name: String, value: String)] {
        var list = commonProperties()
        list.append(("group.id", group))
        // No client joins the group, so this only limits how long offsets wait for the group's coordinator, and thereby
        // how long closing can take while there is none.
        list.append(("session.timeout.ms", "1000"))
        list += rawProperties()
        // This client comes and goes, so its connection state says nothing.
        list.append((Self.statisticsName, "0"))
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
            (Self.statisticsName, statisticsInterval.millisecondsText),
            // A typing mistake in a topic's name must not create a topic. Nor must a deleted topic come back with other
            // settings.
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

    private static let statisticsName = "statistics.interval.ms"

    private func rawProperties() -> [(name: String, value: String)] {
        properties.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) }
    }
}
