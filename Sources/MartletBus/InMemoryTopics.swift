import Synchronization

/// The topics that in-memory buses share, by name.
final class InMemoryTopics: Sendable {
    private let logs = Mutex<[String: InMemoryLog]>([:])

    var names: [String] { logs.withLock { $0.keys.sorted() } }

    /// Returns the log of a topic. Creates it if there is none.
    func log(of topic: String, partitionCount: Int) -> InMemoryLog {
        logs.withLock { logs in
            if let log = logs[topic] { return log }
            let log = InMemoryLog(partitionCount: partitionCount)
            logs[topic] = log
            return log
        }
    }

    /// Returns the log of a topic. Nil if there is none.
    subscript(topic: String) -> InMemoryLog? { logs.withLock { $0[topic] } }
}
