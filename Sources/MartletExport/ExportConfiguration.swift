/// The settings of exporting changes to other systems.
public struct ExportConfiguration: Sendable, Equatable {
    /// The beginning of the names of all topics. Nil: nothing is exported.
    public var prefix: String?
    /// The tables to export. Empty: all that are synced.
    public var tables: [String] = []
    /// Whether each record carries its Kafka Connect schema, as with `schemas.enable=true` of Connect's JSON converter.
    public var schemas = false
    /// Whether each record carries the headers of a CloudEvent (binary content mode).
    public var cloudEvents = false
    /// Whether changes that ingest brought from other systems are exported, too.
    public var ingested = false
    /// The number of partitions of a table's topic that the exporter creates.
    public var partitions = 1
    /// The number of replicas of a topic that the exporter creates. Nil: the brokers' default.
    public var replicationFactor: Int?
    /// How long after the last sign of life of one exporter another node claims its place. That one begins to export
    /// after the same time again.
    public var leaseTimeout = Duration.seconds(15)
    /// The most changes that are read, sent and acknowledged at once.
    public var batchChanges = 1000

    public init() {}

    /// Returns every problem, as `field: what is wrong with the value`.
    public func validate() -> [String] {
        var problems: [String] = []
        if let prefix, let problem = TopicNames.problem(ofPrefix: prefix) { problems.append("prefix: \(problem)") }
        if prefix == nil, !tables.isEmpty { problems.append("tables: has no effect without export.prefix") }
        if tables.contains("") { problems.append("tables: has an empty name") }
        if !(1...10_000).contains(partitions) { problems.append("partitions: must be from 1 to 10000") }
        if let replicationFactor, !(1...100).contains(replicationFactor) {
            problems.append("replicationFactor: must be from 1 to 100, or null")
        }
        if !(Duration.seconds(3)...Duration.seconds(3600)).contains(leaseTimeout) {
            problems.append("leaseTimeout: must be from 3s to 1h")
        }
        if !(1...100_000).contains(batchChanges) { problems.append("batchChanges: must be from 1 to 100000") }
        return problems
    }
}
