/// The settings of ingest: which topics of Debezium connectors become rows of which tables.
public struct IngestConfiguration: Sendable, Equatable {
    /// The topics, each once. Empty: nothing is ingested.
    public var topics: [TableMapping] = []

    public init() {}

    /// Returns every problem, as `field: what is wrong with the value`.
    public func validate() -> [String] {
        var problems: [String] = []
        for (index, mapping) in topics.enumerated() {
            problems += mapping.problems().map { "topics[\(index)].\($0)" }
        }
        var seen: Set<String> = []
        for mapping in topics where !mapping.topic.isEmpty && !seen.insert(mapping.topic).inserted {
            problems.append("topics: \(mapping.topic) is there more than once")
        }
        return problems
    }
}
