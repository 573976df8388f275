import Logging
import MartletBus

extension Consumer {
    /// Rereads partitions with messages that the dead-letter queue (quarantine) had no room for, or that were too
    /// large, if it would keep them now. Runs once after each start. Deduplication by origin and sequence makes it safe
    /// to read messages twice.
    func readUnkept(_ consumer: any BusConsumer, _ marks: [Int32: Watermarks]) throws {
        guard !state.hasReadUnkept else { return }
        let partitions = try quarantine.partitionsWithUnkept(topic: bus.topic, marks)
        if !partitions.isEmpty {
            log.info(
                "Rereading partitions: the quarantine has room for messages that it did not keep",
                metadata: ["partitions": "\(partitions.sorted())"])
            // In this order, so that a crash in between repeats the rereading.
            try reset(partitions, consumer)
            try quarantine.forgetUnkept(topic: bus.topic, in: partitions)
        }
        // Only now: if the connection is lost before, the next one makes up for it.
        state.hasReadUnkept = state.reading.unexamined.isEmpty
    }
}
