/// The part of librdkafka's statistics that becomes metrics. The names are librdkafka's (STATISTICS.md).
struct KafkaStatistics: Decodable, Equatable {
    struct Broker: Decodable, Equatable {
        struct Window: Decodable, Equatable {
            /// Microseconds.
            var avg: Int64
        }

        /// -1 for the bootstrap addresses, whose broker IDs are not known yet.
        var nodeid: Int32
        var state: String
        var txerrs: Int64
        var rxerrs: Int64
        var txretries: Int64
        var rtt: Window
    }

    struct Partition: Decodable, Equatable {
        /// -1 for the queue of messages that have no partition yet.
        var partition: Int32
        /// Messages behind what was read and applied. -1 if unknown.
        var consumer_lag_stored: Int64
    }

    struct Topic: Decodable, Equatable {
        var partitions: [String: Partition]
    }

    var msg_cnt: Int64
    var msg_size: Int64
    var brokers: [String: Broker]
    var topics: [String: Topic]

    /// Returns how many partitions of a topic the client knows of.
    func partitionCount(of topic: String) -> Int {
        topics[topic]?.partitions.values.count { $0.partition >= 0 } ?? 0
    }
}
