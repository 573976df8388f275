public import MartletBus

/// The state of a topic in the cluster.
public struct KafkaTopicDescription: Sendable, Equatable {
    public struct Partition: Sendable, Equatable {
        public var id: Int32
        /// The ID of the partition's leader, -1 while there is none.
        public var leader: Int32
        public var replicas: [Int32]
        public var inSyncReplicas: [Int32]
        /// Nil if the partition's leader did not answer.
        public var watermarks: Watermarks?

        package init(
            id: Int32, leader: Int32, replicas: [Int32], inSyncReplicas: [Int32], watermarks: Watermarks?
        ) {
            self.id = id
            self.leader = leader
            self.replicas = replicas
            self.inSyncReplicas = inSyncReplicas
            self.watermarks = watermarks
        }
    }

    public var name: String
    public var partitions: [Partition]
    /// Broker ID to `host:port`, as the brokers advertise them.
    public var brokers: [Int32: String]
    /// The topic's settings, without sensitive ones. Nil if the broker does not report them.
    public var settings: [String: String]?

    package init(name: String, partitions: [Partition], brokers: [Int32: String], settings: [String: String]?) {
        self.name = name
        self.partitions = partitions
        self.brokers = brokers
        self.settings = settings
    }
}
