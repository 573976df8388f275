import Synchronization

/// Whether the brokers answer a held fetch as soon as a message arrives, as far as known. Usable from any thread.
///
/// Apache Kafka does, so a consumer that has caught up may let it hold fetches for long. Other brokers look for
/// messages from time to time, or only when the wait is over: there, a message would be delayed by up to the whole wait
/// (docs/decisions/0049). All consumers of a node share what one of them has learned.
final class FetchWakeups: Sendable {
    private let known = Mutex<Bool?>(nil)

    /// Nil until a message has shown which is true.
    var areImmediate: Bool? {
        get { known.withLock { $0 } }
        set { known.withLock { $0 = newValue } }
    }
}
