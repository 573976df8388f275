public import Logging
public import MartletExport
public import MartletIngest
public import MartletKafka
public import MartletStore
public import MartletSync

/// Everything that an agent needs to know.
public struct AgentConfiguration: Sendable, Equatable {
    public enum LogFormat: String, Sendable, CaseIterable {
        case text
        case json
    }

    /// The store's file. Required.
    public var storePath = ""
    public var store = StoreConfiguration()
    public var kafka = KafkaConfiguration(bootstrapServers: [])
    public var sync = SyncConfiguration()
    /// The policy for a store that is a copy of another one, and has the same node ID.
    public var whenCopied = CopyPolicy.refuse
    public var snapshot = SnapshotConfiguration()
    public var check = AntiEntropyConfiguration()
    public var export = ExportConfiguration()
    public var ingest = IngestConfiguration()
    public var security = AgentSecurity()
    /// History that was written, or came from other nodes, longer ago than this is deleted, as far as every cursor has
    /// passed it. 30 days by default. Nil: kept, however old.
    public var historyAge: Duration? = .seconds(30 * 86_400)
    /// The oldest history is deleted while the log is larger than this, in bytes, as far as every cursor has passed it.
    /// 256 MiB by default. Nil: no bound.
    public var historySizeBytes: Int64? = 256 << 20
    public var http = HTTPConfiguration()
    public var telemetry = TelemetryConfiguration()
    /// The files that passwords and tokens were read from, by the key that named them. ``ConnectionDoctor`` checks
    /// their modes; nothing reads them again.
    public var secretFiles: [String: String] = [:]
    public var logLevel = Logger.Level.info
    public var logFormat = LogFormat.text

    public init() {}

    /// Returns every problem, as `field: what is wrong with the value`. Also checks whether the files for TLS can be
    /// read.
    public func validate() -> [String] {
        var problems: [String] = []
        if storePath.isEmpty { problems.append("store.path: is not set; set it in the file or pass --store") }
        problems += store.validate().map { $0.hasPrefix("foreignAuthor:") ? "sync.\($0)" : "store.\($0)" }
        problems += kafka.validate().map { "kafka.\($0)" }
        problems += unreadableFiles
        problems += sync.validate().map { "sync.\($0)" }
        problems += snapshot.validate().map { "snapshot.\($0)" }
        problems += check.validate().map { "check.\($0)" }
        problems += export.validate().map { "export.\($0)" }
        if let prefix = export.prefix, "\(kafka.topic).".hasPrefix("\(prefix).") {
            problems.append(
                "export.prefix: \(prefix) must not be the beginning of kafka.topic: a table could get a topic of nodes")
        }
        problems += ingest.validate().map { "ingest.\($0)" } + ownTopicsToIngest
        problems += http.validate().map { "http.\($0)" }
        problems += telemetry.validate()
        problems += security.validate().map { "security.\($0)" }
        if let historyAge, historyAge <= .zero { problems.append("history.retention.age: must be above 0") }
        if let historySizeBytes, historySizeBytes <= 0 {
            problems.append("history.retention.sizeBytes: must be above 0")
        }
        return problems
    }

    /// What nodes or exports write must not come back as rows.
    private var ownTopicsToIngest: [String] {
        let own = TopicRights.specifications(for: kafka.topic).map(\.name)
        return ingest.topics.enumerated().compactMap { index, mapping in
            if own.contains(mapping.topic) {
                return "ingest.topics[\(index)].topic: \(mapping.topic) is a topic of the nodes themselves"
            }
            guard let prefix = export.prefix, mapping.topic.hasPrefix("\(prefix).") else { return nil }
            return
                "ingest.topics[\(index)].topic: \(mapping.topic) begins with export.prefix, as exported topics do"
        }
    }
}
