import Synchronization

/// Whether the brokers answer a fetch that they hold as soon as a message comes, as far as is known. From any thread.
///
/// Apache Kafka does, and a consumer that has caught up may let it hold fetches for long. Others look for messages from
/// time to time, or only when the wait is over: there, that long a message would be on its way (docs/decisions/0049).
/// All consumers of a node share what one has learned.
final class FetchAnswers: Sendable {
    private let known = Mutex<Bool?>(nil)

    /// Nil until a message has shown it.
    var areImmediate: Bool? {
        get { known.withLock { $0 } }
        set { known.withLock { $0 = newValue } }
    }
}
