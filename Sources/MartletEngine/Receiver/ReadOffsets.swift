import GRDB
import MartletBus
import MartletReplica
import MartletWire

/// How far one commit reads each partition of a topic, for deduplication by position.
struct ReadOffsets {
    private let db: Database
    private let context: ReplicaContext
    private let topic: String
    private var read: [Int32: ReadPositions.Offset] = [:]

    init(_ db: Database, _ context: ReplicaContext, topic: String) {
        self.db = db
        self.context = context
        self.topic = topic
    }

    /// Returns how far a partition was read before this commit.
    func stored(_ partition: Int32) throws -> ReadPositions.Offset {
        try ReadProgress.offset(db, context, topic, partition)
    }

    /// The message was read, whatever became of it.
    mutating func note(_ decoded: DecodedMessage) {
        let position = decoded.message.position
        let envelope = try? decoded.envelope.get()
        read[position.partition] = ReadPositions.Offset(
            next: position.offset + 1, origin: envelope?.origin, sequence: envelope?.sequence,
            appended: decoded.message.timestamp)
    }

    /// Notes the offsets for the end of the commit.
    func finish() {
        for (partition, offset) in read { ReadProgress.noteOffset(context, topic, partition, offset) }
    }
}
