/// A ``Bus`` within one process: a shared log in memory, for tests and for several stores in one process.
///
/// All copies of a bus, and the producers and consumers made from it, share one log. The log grows without limit unless
/// ``truncate(partition:upTo:)`` or `wipe(partitionCount:)` drops messages. Messages carry the time of arrival, as
/// with Kafka's `LogAppendTime`.
public struct InMemoryBus: Bus {
    public let topic: String
    private let log: InMemoryLog
    private let topics: InMemoryTopics

    /// - Parameter partitionCount: at least one.
    public init(topic: String = "martlet", partitionCount: Int = 1) {
        self.init(topic: topic, partitionCount: partitionCount, topics: InMemoryTopics())
    }

    /// Creates the bus of another topic beside this one, like a second topic on one broker. A topic that exists keeps
    /// its messages and its partitions.
    ///
    /// - Parameter partitionCount: at least one.
    public init(topic: String, partitionCount: Int = 1, beside other: InMemoryBus) {
        self.init(topic: topic, partitionCount: partitionCount, topics: other.topics)
    }

    private init(topic: String, partitionCount: Int, topics: InMemoryTopics) {
        precondition(partitionCount > 0, "a topic has at least one partition")
        self.topic = topic
        self.topics = topics
        log = topics.log(of: topic, partitionCount: partitionCount)
    }

    /// The names of the topics that buses were made for, this one included, sorted.
    public var topicNames: [String] { topics.names }

    public func makeProducer(
        acknowledge: @escaping @Sendable (Acknowledgement) -> Void
    ) throws(BusError) -> any BusProducer {
        InMemoryProducer(log, topics, acknowledge: acknowledge)
    }

    public func makeConsumer() throws(BusError) -> any BusConsumer {
        InMemoryConsumer(log)
    }

    /// Drops the messages of a partition before an offset, as retention does.
    public func truncate(partition: Int32, upTo offset: Int64) {
        log.truncate(partition: partition, upTo: offset)
    }

    /// Drops all messages and starts again at offset zero, like a topic that is deleted and recreated.
    ///
    /// - Parameter partitionCount: the number of partitions of the new topic, at least one. Nil keeps the present
    ///   number.
    public func wipe(partitionCount: Int? = nil) {
        precondition(partitionCount ?? 1 > 0, "a topic has at least one partition")
        log.wipe(partitionCount: partitionCount)
    }

    /// Adds empty partitions. From then on, keys may map to other partitions.
    public func addPartitions(_ count: Int) {
        log.addPartitions(count)
    }
}
