import Logging
import MartletKafka
import MartletSync

extension KafkaConfiguration {
    /// The same configuration for the topic of the snapshots.
    var forSnapshots: KafkaConfiguration {
        var configuration = self
        configuration.topic = SnapshotTopic.name(of: topic)
        return configuration
    }

    /// The same configuration for the topic of the checks.
    var forChecks: KafkaConfiguration {
        var configuration = self
        configuration.topic = AntiEntropy.name(of: topic)
        return configuration
    }

    /// Creates the topic for snapshots if it is missing: one partition, compacted to the newest message of each key.
    func ensureSnapshotTopic(_ log: Logger) throws { try ensure(.snapshots(of: topic), log) }

    /// Creates the topic for checks if it is missing.
    func ensureCheckTopic(_ log: Logger) throws { try ensure(.checks(of: topic), log) }

    /// Creates a topic if it is missing.
    func ensure(_ specification: KafkaTopicSpecification, _ log: Logger) throws {
        let admin = try KafkaAdmin(self, logger: log)
        guard try !admin.hasTopic(specification.name, timeout: .seconds(4)) else { return }
        do throws(BusError) {
            try admin.createTopic(specification)
        } catch {
            // Another node may have created it meanwhile, or the broker had just started and did not know it yet.
            guard error.code == .alreadyExists || (try? admin.hasTopic(specification.name)) ?? false else {
                throw error
            }
            return
        }
        log.info("Topic created", metadata: ["topic": "\(specification.name)"])
    }
}

extension AgentConfiguration {
    /// How to reach the cluster, with room in the producer for the largest message of this node.
    ///
    /// librdkafka refuses a message that is larger than its queue as if the queue were full, however often it is sent.
    /// Publishing would stop there for good, without an error.
    var kafkaWithRoom: KafkaConfiguration {
        var kafka = kafka
        let most = 1_000_000_000
        // As far apart as the two defaults: for the key, the headers and the encryption. librdkafka takes no more.
        kafka.messageMaxBytes = max(kafka.messageMaxBytes, min(sync.maxMessageBytes, most - 100_000) + 100_000)
        // What is out of range stays so, for `validate()` to report.
        guard kafka.messageMaxBytes <= most, kafka.producerQueueBytes >= 1 << 10 else { return kafka }
        // Exported records may be larger than messages: the property allows them.
        let allowed = kafka.properties["message.max.bytes"].flatMap { Int($0) } ?? 0
        let largest = max(kafka.messageMaxBytes, min(allowed, most))
        kafka.producerQueueBytes = max(kafka.producerQueueBytes, largest + 1024)
        let queue = "queue.buffering.max.kbytes"
        let least = (largest >> 10) + 1
        if let kilobytes = kafka.properties[queue].flatMap({ Int($0) }), kilobytes < least {
            kafka.properties[queue] = "\(least)"
        }
        return kafka
    }
}
