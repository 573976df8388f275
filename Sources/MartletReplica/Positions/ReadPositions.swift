package import MartletCore
import MartletStore

/// How far partitions and origins were read, cached from the file: what was looked up stays valid as long as nobody
/// else writes.
///
/// Confined to the engine's connection. Recreated after a rollback, together with its context.
package final class ReadPositions {
    /// How far a partition was read, and which message was last.
    package struct Offset {
        package var next: Int64 = 0
        package var origin: NodeID?
        package var sequence: Int64?
        /// When the message was appended, according to the broker or the producer.
        package var appended: Int64?

        package init(next: Int64 = 0, origin: NodeID? = nil, sequence: Int64? = nil, appended: Int64? = nil) {
            self.next = next
            self.origin = origin
            self.sequence = sequence
            self.appended = appended
        }
    }

    var statements = ReadProgress.Statements()
    private var topic = ""
    private var offsets: [Int32: Offset] = [:]
    /// The newest sequence of each origin, by node number.
    package private(set) var applied: [Int64: Int64] = [:]

    package func offset(_ topic: String, _ partition: Int32) -> Offset? {
        topic == self.topic ? offsets[partition] : nil
    }

    package func set(_ topic: String, _ partition: Int32, _ offset: Offset) {
        if topic != self.topic {
            self.topic = topic
            offsets = [:]
        }
        offsets[partition] = offset
    }

    /// The newest sequence of an origin is known.
    package func set(_ node: Int64, applied sequence: Int64) { applied[node] = sequence }

    /// Drops the cache, so that everything is read from the file again.
    package func forget() {
        offsets = [:]
        applied = [:]
    }
}
