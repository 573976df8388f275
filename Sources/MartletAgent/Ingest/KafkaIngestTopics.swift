import MartletIngest
import MartletKafka
import MartletSync

/// The topics to ingest, on Kafka.
struct KafkaIngestTopics: IngestTopics {
    private let configuration: KafkaConfiguration
    private let bus: KafkaBus

    /// - Parameter configuration: those of the cluster and of the topic that nodes sync through.
    init(_ configuration: KafkaConfiguration, besides bus: KafkaBus) {
        var configuration = configuration
        // Lag tools would take the offsets of all topics for those of one.
        configuration.storesGroupOffsets = false
        self.configuration = configuration
        self.bus = bus
    }

    func bus(of topic: String) throws -> any Bus {
        var configuration = configuration
        configuration.topic = topic
        return try KafkaBus(configuration, besides: bus)
    }
}
