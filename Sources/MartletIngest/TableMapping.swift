/// A topic, and the table that its rows go to.
public struct TableMapping: Sendable, Equatable {
    /// The topic that a Debezium connector writes a table's changes to.
    public var topic: String
    /// The tracked table that gets the rows.
    public var table: String
    /// The column of the table for each column of the source. Columns of the source that are not listed are left out.
    /// Nil: all columns keep their names.
    public var columns: [String: String]?

    public init(topic: String, table: String, columns: [String: String]? = nil) {
        self.topic = topic
        self.table = table
        self.columns = columns
    }
}

extension TableMapping {
    /// Returns every problem of one mapping, each as what is wrong with it.
    func problems() -> [String] {
        var problems: [String] = []
        if let problem = Self.problem(ofTopic: topic) { problems.append("topic: \(problem)") }
        if table.isEmpty { problems.append("table: is empty") }
        guard let columns else { return problems }
        if columns.isEmpty { problems.append("columns: is empty; leave it out to take all columns") }
        if columns.contains(where: { $0.key.isEmpty || $0.value.isEmpty }) {
            problems.append("columns: has an empty name")
        }
        let targets = Dictionary(grouping: columns.values) { $0.lowercased() }
        for (_, names) in targets.sorted(by: { $0.key < $1.key }) where names.count > 1 {
            problems.append("columns: more than one column goes to \(names.sorted()[0])")
        }
        return problems
    }

    /// Returns what is wrong with the name of a topic. Nil if nothing is.
    private static func problem(ofTopic topic: String) -> String? {
        if topic.isEmpty { return "is empty" }
        // Kafka's limit.
        if topic.utf8.count > 249 { return "has more than 249 characters" }
        let isLegal = topic.unicodeScalars.allSatisfy { scalar in
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9", ".", "_", "-": true
            default: false
            }
        }
        if !isLegal || topic == "." || topic == ".." { return "\(topic) is no name of a topic" }
        return nil
    }
}
