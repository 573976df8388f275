import Logging

extension Consumer {
    /// Reads partitions again in which messages are that the quarantine had no room for, or that were too large, where
    /// that is otherwise now. Once after each start: what is read twice is told by origin and sequence.
    func readUnkept(_ consumer: any BusConsumer, _ marks: [Int32: Watermarks]) throws {
        guard !state.hasReadUnkept else { return }
        state.hasReadUnkept = true
        let partitions = try engine.partitionsWithUnkept(topic: bus.topic, marks)
        guard !partitions.isEmpty else { return }
        log.info(
            "Rereading partitions: the quarantine has room for messages that it did not keep",
            metadata: ["partitions": "\(partitions.sorted())"])
        // In this order: a crash in between has them read once more.
        try reset(partitions, consumer)
        try engine.forgetUnkept(topic: bus.topic, in: partitions)
    }
}
