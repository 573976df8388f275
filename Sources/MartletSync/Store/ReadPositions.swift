import MartletStore

/// How far partitions and origins were read, as the file has it: what was looked up stays known as long as nobody else
/// writes.
///
/// Confined to the engine's connection. Made anew after a rollback, with the context that it belongs to.
final class ReadPositions {
    /// How far a partition was read, and which message came last.
    struct Offset {
        var next: Int64 = 0
        var origin: NodeID?
        var sequence: Int64?
        /// When the broker or the producer says that it was appended.
        var appended: Int64?
    }

    private var topic = ""
    private var offsets: [Int32: Offset] = [:]
    /// The newest sequence of each origin, by the node's number.
    var applied: [Int64: Int64] = [:]
    /// What the quarantine takes in the store. Nil until it was asked for.
    var quarantinedBytes: Int?
    /// Chunks that wait for the rest of their transactions. Nil until they were asked for.
    var chunks: ChunkTally?

    func offset(_ topic: String, _ partition: Int32) -> Offset? { topic == self.topic ? offsets[partition] : nil }

    func set(_ topic: String, _ partition: Int32, _ offset: Offset) {
        if topic != self.topic {
            self.topic = topic
            offsets = [:]
        }
        offsets[partition] = offset
    }

    /// Everything is read from the file again.
    func forget() {
        offsets = [:]
        applied = [:]
        quarantinedBytes = nil
        chunks = nil
    }
}
