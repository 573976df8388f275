import MartletCore

/// A partition of a topic, as the origin of changes.
struct Source: Sendable {
    var topic: String
    var partition: Int32
    /// The node in the stamps of its changes.
    var node: NodeID
    /// The nodes of all partitions of the topic.
    var siblings: Set<NodeID>

    /// - Parameter partitionCount: that of the topic.
    init(topic: String, partition: Int32, partitionCount: Int) {
        self.topic = topic
        self.partition = partition
        node = NodeID(sourceTopic: topic, partition: partition)
        siblings = Set(
            (0..<max(Int32(partitionCount), partition + 1)).map { NodeID(sourceTopic: topic, partition: $0) })
    }

    /// Its name for people.
    var name: String { "\(topic)/\(partition)" }
}
