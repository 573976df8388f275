import CRdKafka
public import Logging
public import MartletBus
public import Metrics

/// The ``/MartletBus/Bus`` over Apache Kafka, on librdkafka.
///
/// It holds no connection of its own: producers and consumers each have one.
public struct KafkaBus: Bus {
    public let configuration: KafkaConfiguration
    let logger: Logger
    private let metrics: any MetricsFactory
    let wakeups: FetchWakeups

    public var topic: String { configuration.topic }

    /// - Parameters:
    ///   - logger: receives librdkafka's own log besides the bus's.
    ///   - metrics: the factory for the metrics that ``KafkaMetricNames`` lists. They are recorded if the configuration
    ///     asks for statistics.
    /// - Throws: ``/MartletBus/BusError`` with code `.configuration` that names every problem of
    ///   ``KafkaConfiguration/validate()``.
    public init(
        _ configuration: KafkaConfiguration, logger: Logger = Logger(label: "martlet.kafka"),
        metrics: any MetricsFactory = MetricsSystem.factory
    ) throws(BusError) {
        try self.init(configuration, logger: logger, metrics: metrics, wakeups: FetchWakeups())
    }

    /// Creates the bus of another topic on the same brokers.
    ///
    /// - Throws: like ``init(_:logger:metrics:)``.
    package init(_ configuration: KafkaConfiguration, besides other: KafkaBus) throws(BusError) {
        try self.init(
            configuration, logger: other.logger, metrics: MetricsSystem.factory, wakeups: other.wakeups)
    }

    private init(
        _ configuration: KafkaConfiguration, logger: Logger, metrics: any MetricsFactory, wakeups: FetchWakeups
    ) throws(BusError) {
        let problems = configuration.validate()
        guard problems.isEmpty else {
            throw BusError(
                .configuration, problems.map(\.description).joined(separator: "; "), hint: "Correct the Kafka settings")
        }
        self.configuration = configuration
        self.logger = logger
        self.metrics = metrics
        self.wakeups = wakeups
    }

    public func makeProducer(
        acknowledge: @escaping @Sendable (Acknowledgement) -> Void
    ) throws(BusError) -> any BusProducer {
        try makeProducer(maxBatchBytes: nil, acknowledge: acknowledge)
    }

    public func makeProducer(
        maxBatchBytes: Int?, acknowledge: @escaping @Sendable (Acknowledgement) -> Void
    ) throws(BusError) -> any BusProducer {
        let client = try makeClient(.producer, role: "producer", maxBatchBytes: maxBatchBytes)
        return KafkaProducer(client, configuration, acknowledge: acknowledge)
    }

    public func batchLimit(timeout: Duration) throws(BusError) -> Int? {
        let client = try makeClient(.consumer, role: "admin")
        return try client.settings(ofTopic: topic, timeout: timeout)["max.message.bytes"].flatMap { Int($0) }
    }

    public func makeConsumer() throws(BusError) -> any BusConsumer {
        try consumer()
    }

    /// - Parameter pause: the time between reaching the end of all partitions and creating the patient client.
    package func makeConsumer(pause: Duration) throws(BusError) -> any BusConsumer {
        try consumer(pause: pause)
    }

    /// - Parameter pause: see ``ReadingClients``.
    func consumer(pause: Duration = ReadingClients.firstPause) throws(BusError) -> KafkaConsumer {
        var offsets: GroupOffsets?
        if configuration.storesGroupOffsets {
            offsets = GroupOffsets(topic: topic, logger: logger) { group throws(BusError) in
                try makeClient(.committer, role: "offsets", group: group)
            }
        }
        let wake = WakeSignal()
        let clients = try ReadingClients(
            wake: wake, handsOver: configuration.waitsLongerWhenIdle, pause: pause, wakeups: wakeups
        ) { isPatient throws(BusError) in
            try makeClient(.consumer, role: "consumer", wake: wake, isPatient: isPatient)
        }
        return KafkaConsumer(
            clients, topic: topic, maxPayloadBytes: configuration.maxPayloadBytes, offsets: offsets
        ) { () throws(BusError) in try probe() }
    }

    /// Makes the consumer that finds where an unreadable batch ends. Every second step of the search fails in that
    /// batch, and it need not wait half a second after each failure, as librdkafka does by default.
    private func probe() throws(BusError) -> KafkaConsumer {
        var configuration = configuration
        let pause = "fetch.error.backoff.ms"
        configuration.properties[pause] = configuration.properties[pause] ?? "20"
        return try KafkaBus(configuration, logger: logger, metrics: metrics).consumer()
    }

    /// - Parameters:
    ///   - maxBatchBytes: the batch size limit of a producer.
    ///   - group: the consumer group of a committer.
    ///   - wake: the signal that is set when a consumer has read something.
    ///   - isPatient: true for the client of a consumer that has caught up.
    func makeClient(
        _ kind: RDClient.Kind, role: String, maxBatchBytes: Int? = nil, group: String = "",
        wake: WakeSignal = WakeSignal(), isPatient: Bool = false
    ) throws(BusError) -> RDClient {
        var logger = logger
        logger[metadataKey: "client"] = "\(role)"
        let describe = describer(kind, role: role)
        let metrics =
            configuration.statisticsInterval > .zero ? KafkaMetrics(role: role, topic: topic, factory: metrics) : nil
        let properties =
            switch kind {
            case .producer: configuration.producerProperties(maxBatchBytes: maxBatchBytes)
            case .prober: configuration.proberProperties()
            case .consumer: configuration.consumerProperties(isPatient: isPatient)
            case .committer: configuration.committerProperties(group: group)
            }
        return try RDClient(
            kind, properties: properties, topic: topic,
            context: RDContext(
                logger: logger, describe: describe, metrics: metrics, tokenFile: configuration.tokenFile,
                wake: wake))
    }

    func describer(_ kind: RDClient.Kind, role: String) -> RDErrorDescriber {
        RDErrorDescriber(
            topic: topic, bootstrapServers: configuration.bootstrapServers.joined(separator: ","),
            logsIn: configuration.logsIn, user: configuration.user,
            operation: kind.writes ? .write : role == "admin" ? .describe : .read)
    }
}
