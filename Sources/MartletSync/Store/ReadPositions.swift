import MartletStore

/// How far partitions and origins were read, cached from the file: what was looked up stays valid as long as nobody
/// else writes.
///
/// Confined to the engine's connection. Made anew after a rollback, with the context that it belongs to.
final class ReadPositions {
    /// How far a partition was read, and which message was last.
    struct Offset {
        var next: Int64 = 0
        var origin: NodeID?
        var sequence: Int64?
        /// When the message was appended, according to the broker or the producer.
        var appended: Int64?
    }

    private var topic = ""
    private var offsets: [Int32: Offset] = [:]
    /// The newest sequence of each origin, by node number.
    var applied: [Int64: Int64] = [:]
    /// The space that the quarantine takes in the store. Nil until it was asked for.
    var quarantinedBytes: Int?
    /// The chunks that wait for the rest of their transactions. Nil until they were asked for.
    var chunks: ChunkTally?

    func offset(_ topic: String, _ partition: Int32) -> Offset? { topic == self.topic ? offsets[partition] : nil }

    func set(_ topic: String, _ partition: Int32, _ offset: Offset) {
        if topic != self.topic {
            self.topic = topic
            offsets = [:]
        }
        offsets[partition] = offset
    }

    /// Drops the cache, so that everything is read from the file again.
    func forget() {
        offsets = [:]
        applied = [:]
        quarantinedBytes = nil
        chunks = nil
    }
}
