package import MartletBus
import Synchronization

/// The last message of each partition that was compared, so that the next attempt continues there: over a bad link, a
/// long topic would never be compared to its end. From any thread.
package final class ComparedMessages: Sendable {
    private struct Content {
        var topic = ""
        var last: [Int32: LastMessage] = [:]
    }

    private let content = Mutex(Content())

    package init() {}

    /// Forgets the messages of another topic, or of the same one with other partitions.
    package func begin(_ topic: String) {
        content.withLock { content in
            if topic != content.topic { content = Content() }
            content.topic = topic
        }
    }

    /// Returns where to continue: at the message that was compared last, to see that it is still there.
    package func offset(_ partition: Int32) -> Int64? { content.withLock { $0.last[partition]?.offset } }

    /// - Returns: false if another message was compared at this position. All of the partition must be compared again.
    package func note(_ message: IncomingMessage) -> Bool {
        let next = LastMessage(message)
        let partition = message.position.partition
        return content.withLock { content in
            if let known = content.last[partition], known.offset == next.offset, known != next {
                content.last[partition] = nil
                return false
            }
            content.last[partition] = next
            return true
        }
    }
}
