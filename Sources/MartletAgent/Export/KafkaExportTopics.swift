import Logging
import MartletExport
import MartletKafka
import MartletSync

/// The topics of an export on Kafka.
struct KafkaExportTopics: ExportTopics {
    private let configuration: KafkaConfiguration
    private let bus: KafkaBus
    private let replicationFactor: Int?
    private let log: Logger

    /// - Parameter configuration: those of the cluster and of the topic that nodes sync through.
    init(_ configuration: KafkaConfiguration, besides bus: KafkaBus, replicationFactor: Int?, log: Logger) {
        var configuration = configuration
        // Nothing asks how far an exporter has read its own topics, and it waits for what it has just sent.
        configuration.storesGroupOffsets = false
        configuration.idleFetchWaitMax = .zero
        self.configuration = configuration
        self.bus = bus
        self.replicationFactor = replicationFactor
        self.log = log
    }

    func ensure(_ topic: ExportTopic) throws {
        var specification = KafkaTopicSpecification(
            name: topic.name, partitionCount: topic.partitionCount, replicationFactor: replicationFactor)
        if topic.isCompacted { specification.settings["cleanup.policy"] = "compact" }
        try configuration.ensure(specification, log)
    }

    func bus(of topic: String) throws -> any Bus {
        var configuration = configuration
        configuration.topic = topic
        return try KafkaBus(configuration, besides: bus)
    }
}
