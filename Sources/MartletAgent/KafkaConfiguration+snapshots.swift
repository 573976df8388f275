import Logging
import MartletKafka
import MartletSync

extension KafkaConfiguration {
    /// The same for the topic on which snapshots are.
    var forSnapshots: KafkaConfiguration {
        var configuration = self
        configuration.topic = SnapshotTopic.name(of: topic)
        return configuration
    }

    /// Makes the topic for snapshots where it is missing: one partition, of which the broker keeps the newest message of each key.
    func ensureSnapshotTopic(_ log: Logger) throws {
        let admin = try KafkaAdmin(self, logger: log)
        let name = SnapshotTopic.name(of: topic)
        do throws(BusError) {
            _ = try admin.describeTopic(name)
            return
        } catch {
            guard error.code == .unknownTopic else { throw error }
        }
        try admin.createTopic(.snapshots(of: topic))
        log.info("The topic for snapshots was created", metadata: ["topic": "\(name)"])
    }
}
