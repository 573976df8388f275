import MartletKafka
import MartletSync

/// Every metric that an agent serves: what it is called, and what it says. docs/operations.md has the same table.
package enum MetricCatalog {
    package struct Entry: Sendable {
        package var name: String
        /// `counter`, `gauge` or `histogram`.
        package var kind: String
        package var labels: [String]
        package var help: String

        init(_ name: String, _ kind: MetricFamily.Kind, _ labels: [String] = [], _ help: String) {
            self.name = name
            self.kind = kind.rawValue
            self.labels = labels
            self.help = help
        }
    }

    static func help(_ name: String) -> String { helps[name] ?? "Recorded by a library as \(name)." }

    private static let helps = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0.help) })

    package static let all: [Entry] = progress + store + recorded + kafka + process

    private static let partition = ["partition", "topic"]
    private static let client = ["client", "topic"]
    private static let broker = ["broker", "client", "topic"]

    static let progress: [Entry] = [
        Entry(AgentMetric.info, .gauge, ["name", "node"], "Always 1; the labels say which node this is."),
        Entry(AgentMetric.ready, .gauge, "1 where /readyz says yes, else 0."),
        Entry(AgentMetric.readHeldUp, .gauge, "1 while something holds reading the topic up, else 0."),
        Entry(AgentMetric.publishHeldUp, .gauge, "1 while something holds publishing up, else 0."),
        Entry(AgentMetric.lagMessages, .gauge, partition, "Messages of the partition that wait to be read."),
        Entry(AgentMetric.lagSeconds, .gauge, partition, "For how long the oldest of them may have been waiting."),
        Entry(AgentMetric.lastStep, .gauge, "When the broker was last asked without an error, since 1970."),
        Entry(AgentMetric.unpublished, .gauge, "Transactions of this node that the broker has not acknowledged."),
        Entry(AgentMetric.inFlight, .gauge, "Bytes that were sent to the broker and not answered yet."),
        Entry(
            AgentMetric.snapshotMessages, .gauge,
            "Messages of the snapshot that is being loaded, or was since the start."),
        Entry(AgentMetric.snapshotLoaded, .gauge, "Messages of that snapshot that were loaded."),
    ]

    static let store: [Entry] = [
        Entry(AgentMetric.parked, .gauge, "Rows and changes that wait for something."),
        Entry(AgentMetric.quarantined, .gauge, "Messages kept aside that can't be understood."),
        Entry(AgentMetric.conflicts, .gauge, "Entries of the conflict journal: values that merging overruled."),
        Entry(AgentMetric.divergences, .gauge, "Rows on which nodes should have agreed and did not, found by checks."),
        Entry(AgentMetric.missing, .gauge, ["node", "origin"], "Transactions of another node that never came."),
        Entry(
            AgentMetric.heard, .gauge, ["node", "origin"], "When the last transaction of another node came, since 1970."
        ),
        Entry(AgentMetric.lostTables, .gauge, "Tables that were tracked and are no longer."),
        Entry(
            AgentMetric.clockOffset, .gauge, ["bound"],
            "How far this node's clock is ahead of the broker's, between two bounds (low, high); negative where it is behind."
        ),
        Entry(AgentMetric.storeBytes, .gauge, ["file"], "Size of the store's files (database, wal)."),
        Entry(AgentMetric.historyBytes, .gauge, "Size of the history in the store."),
        Entry(AgentMetric.historyTransactions, .gauge, "Transactions that the history has."),
    ]

    static let recorded: [Entry] = [
        Entry(SyncMetricNames.published, .counter, "Transactions that the broker acknowledged."),
        Entry(SyncMetricNames.applied, .counter, "Transactions of other nodes that were applied."),
        Entry(SyncMetricNames.duplicates, .counter, "Transactions that came once more, and were left out."),
        Entry(SyncMetricNames.deferred, .counter, "Transactions kept aside because their clock was too far ahead."),
        Entry(SyncMetricNames.quarantined, .counter, "Messages that could not be understood."),
        Entry(SyncMetricNames.publishRetries, .counter, "Times that publishing was held up, and tried again."),
        Entry(SyncMetricNames.readRetries, .counter, "Times that reading was held up, and tried again."),
        Entry(SyncMetricNames.rereads, .counter, "Times that a partition was read again from its beginning."),
        Entry(
            SyncMetricNames.commitToVisible, .histogram,
            "From the commit at the origin, by its clock, to the commit here, by this node's clock."),
    ]

    static let kafka: [Entry] = [
        Entry(KafkaMetricNames.brokerUp, .gauge, broker, "1 while the client is connected to the broker, else 0."),
        Entry(KafkaMetricNames.brokerRoundTripSeconds, .gauge, broker, "Mean time between a request and its answer."),
        Entry(KafkaMetricNames.brokerSendErrors, .counter, broker, "Requests that could not be sent."),
        Entry(KafkaMetricNames.brokerReceiveErrors, .counter, broker, "Answers that were errors or could not be read."),
        Entry(KafkaMetricNames.brokerRetries, .counter, broker, "Requests that were sent again."),
        Entry(KafkaMetricNames.queueMessages, .gauge, client, "Messages in the producer, not yet acknowledged."),
        Entry(KafkaMetricNames.queueBytes, .gauge, client, "Bytes of the messages in the producer."),
        Entry(
            KafkaMetricNames.consumerLag, .gauge, ["client", "partition", "topic"],
            "Messages behind what was read and applied, by librdkafka."),
    ]

    static let process: [Entry] = [
        Entry("process_resident_memory_bytes", .gauge, "Resident memory."),
        Entry("process_cpu_seconds_total", .counter, "Processor time in user and system mode."),
        Entry("process_open_fds", .gauge, "Open file descriptors."),
        Entry("process_start_time_seconds", .gauge, "When the process started, since 1970."),
    ]
}

extension MetricCatalog.Entry {
    fileprivate init(_ name: String, _ kind: MetricFamily.Kind, _ help: String) { self.init(name, kind, [], help) }
}
