import MartletExport
import MartletIngest
import MartletKafka
import MartletSync

/// Every metric that an agent serves: its name and its meaning. docs/operations.md has the same table.
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

    package static let all: [Entry] = progress + store + recorded + export + ingest + telemetry + kafka + process

    private static let partition = ["partition", "topic"]
    private static let client = ["client", "topic"]
    private static let broker = ["broker", "client", "topic"]

    static let progress: [Entry] = [
        Entry(AgentMetric.info, .gauge, ["name", "node"], "Always 1; the labels say which node this is."),
        Entry(AgentMetric.ready, .gauge, "1 if /readyz reports ready, else 0."),
        Entry(AgentMetric.readHeldUp, .gauge, "1 while reading the topic is held up, else 0."),
        Entry(AgentMetric.publishHeldUp, .gauge, "1 while publishing is held up, else 0."),
        Entry(AgentMetric.lagMessages, .gauge, partition, "Messages of the partition that are still to be read."),
        Entry(AgentMetric.lagSeconds, .gauge, partition, "How long the oldest unread message may have been waiting."),
        Entry(AgentMetric.lastStep, .gauge, "Time of the last successful request to the broker, since 1970."),
        Entry(AgentMetric.unpublished, .gauge, "Transactions of this node that the broker has not acknowledged."),
        Entry(AgentMetric.inFlight, .gauge, "Bytes sent to the broker and not acknowledged yet."),
        Entry(
            AgentMetric.snapshotAwaited, .gauge,
            "1 while the node lacks transactions that only a snapshot can supply, else 0."),
        Entry(
            AgentMetric.snapshotMessages, .gauge,
            "Messages in the snapshot being loaded, or last loaded since the start."),
        Entry(AgentMetric.snapshotLoaded, .gauge, "Messages of that snapshot loaded so far."),
    ]

    static let store: [Entry] = [
        Entry(AgentMetric.parked, .gauge, "Rows and changes that can't be applied yet."),
        Entry(AgentMetric.quarantined, .gauge, "Messages that can't be decoded or verified."),
        Entry(AgentMetric.conflicts, .gauge, "Entries of the conflict journal: values that merging overruled."),
        Entry(AgentMetric.divergences, .gauge, "Rows and columns in which nodes diverged, as found by checks."),
        Entry(AgentMetric.missing, .gauge, ["node", "origin"], "Transactions of another node that never arrived."),
        Entry(
            AgentMetric.heard, .gauge, ["node", "origin"], "When another node's last transaction arrived, since 1970."
        ),
        Entry(AgentMetric.lostTables, .gauge, "Tables that are no longer tracked."),
        Entry(
            AgentMetric.clockOffset, .gauge, ["bound"],
            "How far this node's clock is ahead of the broker's, as two bounds (low, high); negative if behind."
        ),
        Entry(AgentMetric.storeBytes, .gauge, ["file"], "Size of the store's files (database, wal)."),
        Entry(AgentMetric.historyBytes, .gauge, "Size of the history in the store."),
        Entry(
            AgentMetric.historyHeld, .gauge,
            "History that a cursor keeps beyond the bounds of the history, about; 0 if none does."),
        Entry(AgentMetric.historyTransactions, .gauge, "Transactions in the history."),
    ]

    static let recorded: [Entry] = [
        Entry(SyncMetricNames.published, .counter, "Transactions that the broker has acknowledged."),
        Entry(SyncMetricNames.applied, .counter, "Transactions of other nodes that were applied."),
        Entry(SyncMetricNames.duplicates, .counter, "Duplicate transactions that were dropped."),
        Entry(SyncMetricNames.deferred, .counter, "Transactions parked because their clock was too far ahead."),
        Entry(SyncMetricNames.quarantined, .counter, "Messages that could not be decoded or verified."),
        Entry(SyncMetricNames.publishRetries, .counter, "Retries of publishing after an error."),
        Entry(SyncMetricNames.readRetries, .counter, "Retries of reading after an error."),
        Entry(SyncMetricNames.rereads, .counter, "Times that a partition was reread from its beginning."),
        Entry(
            SyncMetricNames.commitToVisible, .histogram,
            "Time from the commit at the origin, by its clock, to the commit here, by this node's clock."),
    ]

    static let export: [Entry] = [
        Entry(ExportMetricNames.records, .counter, "Exported records of rows that the broker has acknowledged."),
        Entry(ExportMetricNames.retries, .counter, "Retries of exporting after an error."),
        Entry(
            ExportMetricNames.lag, .gauge,
            "Changes in the history still to be exported, about; 0 on nodes that don't export."),
        Entry(ExportMetricNames.isExporting, .gauge, "1 while this node is the one that exports, else 0."),
    ]

    static let ingest: [Entry] = [
        Entry(IngestMetricNames.records, .counter, "Records of other systems that were merged."),
        Entry(IngestMetricNames.retries, .counter, "Retries of ingesting after an error, of a record or a topic."),
        Entry(IngestMetricNames.lag, .gauge, "Records of topics to ingest that are still to be read, about."),
        Entry(IngestMetricNames.held, .gauge, "Partitions of topics to ingest that a record holds up."),
    ]

    static let telemetry: [Entry] = [
        Entry(TelemetryMetricNames.failures, .counter, "Requests to the OTLP collector that failed or were refused."),
        Entry(TelemetryMetricNames.rejected, .counter, "Data points that the OTLP collector rejected."),
    ]

    static let kafka: [Entry] = [
        Entry(KafkaMetricNames.brokerUp, .gauge, broker, "1 while the client is connected to the broker, else 0."),
        Entry(KafkaMetricNames.brokerRoundTripSeconds, .gauge, broker, "Mean time between a request and its response."),
        Entry(KafkaMetricNames.brokerSendErrors, .counter, broker, "Requests that could not be sent."),
        Entry(KafkaMetricNames.brokerReceiveErrors, .counter, broker, "Responses that were errors or unreadable."),
        Entry(KafkaMetricNames.brokerRetries, .counter, broker, "Requests that were resent."),
        Entry(KafkaMetricNames.queueMessages, .gauge, client, "Messages in the producer, not yet acknowledged."),
        Entry(KafkaMetricNames.queueBytes, .gauge, client, "Bytes of the messages in the producer."),
        Entry(
            KafkaMetricNames.consumerLag, .gauge, ["client", "partition", "topic"],
            "Messages not yet read and applied, as librdkafka counts them."),
    ]

    static let process: [Entry] = [
        Entry("process_resident_memory_bytes", .gauge, "Resident memory."),
        Entry("process_cpu_seconds_total", .counter, "Processor time in user and system mode."),
        Entry("process_open_fds", .gauge, "Open file descriptors."),
        Entry("process_start_time_seconds", .gauge, "Start time of the process, since 1970."),
    ]
}

extension MetricCatalog.Entry {
    fileprivate init(_ name: String, _ kind: MetricFamily.Kind, _ help: String) { self.init(name, kind, [], help) }
}
