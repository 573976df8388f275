import MartletKafka

extension KafkaConfiguration {
    /// A configuration for the embedded broker, which answers empty fetches only when their wait is over.
    static func test(_ broker: EmbeddedBroker) -> KafkaConfiguration {
        var configuration = KafkaConfiguration(bootstrapServers: broker.bootstrapServers)
        configuration.fetchWaitMax = .milliseconds(10)
        configuration.idleFetchWaitMax = .zero
        configuration.properties["reconnect.backoff.max.ms"] = "100"
        return configuration
    }
}
