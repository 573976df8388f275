import CRdKafka

extension KafkaConfiguration {
    /// An invalid setting.
    public struct Problem: Sendable, Hashable, CustomStringConvertible {
        /// The name of the field, or `properties.<name>`.
        public var field: String
        /// The value of the setting; `***` for secrets, and for properties that librdkafka does not have.
        public var value: String
        /// The reason why the value is invalid.
        public var reason: String

        public var description: String { "\(field) = \"\(value)\": \(reason)" }
    }

    /// Checks every field, and lets librdkafka check every raw property. Does not connect.
    ///
    /// - Returns: every problem found; none if the configuration can be used.
    public func validate() -> [Problem] {
        var problems: [Problem] = []
        func require(_ condition: Bool, _ field: String, _ value: String, _ reason: String) {
            if !condition { problems.append(Problem(field: field, value: value, reason: reason)) }
        }
        let servers = bootstrapServers.joined(separator: ",")
        require(
            !bootstrapServers.isEmpty && bootstrapServers.allSatisfy { !$0.isEmpty }, "bootstrapServers", servers,
            "needs at least one host:port")
        // Kafka's own rule for topic names (org.apache.kafka.common.internals.Topic).
        require(
            (1...249).contains(topic.utf8.count) && topic != "." && topic != ".."
                && topic.utf8.allSatisfy(Self.isTopicCharacter),
            "topic", topic, "must be 1 to 249 letters, digits, '.', '_' or '-'")
        require(!node.isEmpty, "node", node, "must not be empty")
        require(
            !securityProtocol.usesSASL || credentials != nil, "credentials", "none",
            "\(securityProtocol.rawValue) needs credentials")
        require(
            securityProtocol.usesSASL || credentials == nil, "securityProtocol", securityProtocol.rawValue,
            "credentials are set, but only sasl_plaintext and sasl_ssl use them")
        require(
            (tls.certificateLocation == nil) == (tls.keyLocation == nil), "tls.keyLocation", tls.keyLocation ?? "none",
            "needs both a certificate and its key")
        require(
            securityProtocol.usesTLS || tls == KafkaTLS() || properties["security.protocol"] != nil, "securityProtocol",
            securityProtocol.rawValue, "TLS files are set, but only ssl and sasl_ssl use TLS")
        // The ranges are librdkafka's.
        require(
            (.zero)...(.seconds(900)) ~= linger, "linger", "\(linger)", "must be 0 to 900 seconds")
        require(
            (1_000...1_000_000_000).contains(messageMaxBytes), "messageMaxBytes", "\(messageMaxBytes)",
            "must be 1000 to 1000000000")
        require(
            producerQueueBytes >= 1 << 10 && producerQueueBytes >> 10 <= Int(Int32.max), "producerQueueBytes",
            "\(producerQueueBytes)", "must be 1 KiB to 2 TiB")
        require(
            consumerQueueBytes >= 1 << 10 && consumerQueueBytes >> 10 <= 2_097_151, "consumerQueueBytes",
            "\(consumerQueueBytes)", "must be 1 KiB to 2 GiB")
        require(
            (.zero)...(.seconds(300)) ~= fetchWaitMax, "fetchWaitMax", "\(fetchWaitMax)", "must be 0 to 300 seconds")
        require(
            (.zero)...(.seconds(299)) ~= idleFetchWaitMax, "idleFetchWaitMax", "\(idleFetchWaitMax)",
            "must be 0 to 299 seconds")
        if let deliveryTimeout {
            require(
                (.milliseconds(1))...(.milliseconds(Int32.max)) ~= deliveryTimeout, "deliveryTimeout",
                "\(deliveryTimeout)", "must be 1 ms to 24 days, or absent for no limit")
        }
        require(
            (.zero)...(.seconds(86_400)) ~= statisticsInterval, "statisticsInterval", "\(statisticsInterval)",
            "must be 0 to 86400 seconds")
        return problems + credentialsProblems() + propertyProblems()
    }

    private func credentialsProblems() -> [Problem] {
        guard let credentials else { return [] }
        let ownTokens = "enable.sasl.oauthbearer.unsecure.jwt"
        let makesTokens = properties[ownTokens] == "true"
        let isBearer = credentials.mechanism == "OAUTHBEARER"
        func problem(_ field: String, _ value: String, _ reason: String) -> [Problem] {
            [Problem(field: field, value: value, reason: reason)]
        }
        switch credentials.tokenFile {
        case ""?:
            return problem("credentials", "", "the path of the token file is empty")
        case _? where !isBearer:
            return problem("credentials", credentials.mechanism, "a token file needs the mechanism OAUTHBEARER")
        case _? where makesTokens:
            return problem("properties.\(ownTokens)", "true", "generates tokens, but a token file is set; keep one")
        case nil where isBearer && !makesTokens:
            return problem("credentials", credentials.mechanism, "needs a token file")
        case nil where !isBearer && credentials.password.value.isEmpty:
            return problem("credentials", "***", "the password is empty")
        default:
            return []
        }
    }

    private func propertyProblems() -> [Problem] {
        guard !properties.isEmpty else { return [] }
        let scratch = rd_kafka_conf_new()
        defer { rd_kafka_conf_destroy(scratch) }
        return properties.sorted { $0.key < $1.key }.compactMap { name, value in
            let reason: String
            var isSecret = RDProperties.isSecret(name)
            if let refusal = RDProperties.refused[name] {
                reason = "can't be set: \(refusal)"
            } else {
                do throws(RDPropertyError) {
                    try rdSetProperty(scratch, name, value)
                    return nil
                } catch {
                    reason = error.reason
                    // It may be a misspelled password.
                    if error.isUnknown { isSecret = true }
                }
            }
            return Problem(field: "properties.\(name)", value: isSecret ? "***" : value, reason: reason)
        }
    }

    private static func isTopicCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
            true
        default:
            false
        }
    }
}
