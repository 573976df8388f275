import Synchronization

/// How large messages to one topic, and batches of them, may be. From any thread.
///
/// As large as the configuration says, until the broker refuses one. Then the topic's own limit holds, which the broker
/// is asked for; where it does not say, half of what was refused. A limit that was raised meanwhile is found by asking
/// now and then.
package final class MessageLimit: Sendable {
    private struct State {
        var messageBytes: Int
        /// Nil while nothing was refused.
        var batchBytes: Int?
        var askedAt: ContinuousClock.Instant?
    }

    /// What a message has beside its payload: key, headers and framing, with something to spare. Of a small limit, a
    /// quarter.
    private static let envelopeBytes = 4096
    private static let minBytes = 1000
    /// How often it is asked whether a limit that holds messages down still does.
    private static let interval = Duration.seconds(600)
    private static let patience = Duration.seconds(5)

    private let bus: any Bus
    private let configured: Int
    private let now: @Sendable () -> ContinuousClock.Instant
    private let state: Mutex<State>

    /// - Parameter configured: the most bytes of a payload, as far as this node decides.
    init(_ bus: any Bus, configured: Int, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        self.bus = bus
        self.configured = configured
        self.now = now
        state = Mutex(State(messageBytes: configured))
    }

    /// The most bytes that a payload may have.
    var messageBytes: Int { state.withLock { $0.messageBytes } }

    /// The most bytes that a batch may have. Nil for the bus's own choice.
    var batchBytes: Int? { state.withLock { $0.batchBytes } }

    /// The broker refused a message or a batch. Asks it for the limit; blocks for at most five seconds.
    func noteRefused() {
        let topic = topicLimit()
        state.withLock { state in
            // What is refused although it fits is more than the broker says.
            let refused = state.batchBytes ?? .max
            if let topic, topic < refused {
                state.batchBytes = topic
                state.messageBytes = payloadBytes(topic)
            } else {
                state.messageBytes = max(Self.minBytes, state.messageBytes / 2)
                state.batchBytes = state.messageBytes + Self.envelopeBytes
            }
        }
    }

    /// Asks the broker again, where a limit holds messages down and that was some time ago. Blocks as
    /// ``noteRefused()``.
    func refresh() {
        let isDue = state.withLock { state in
            state.batchBytes != nil && state.askedAt.map { now() - $0 > Self.interval } ?? true
        }
        guard isDue, let topic = topicLimit() else { return }
        state.withLock { state in
            state.messageBytes = payloadBytes(topic)
            state.batchBytes = state.messageBytes < configured ? topic : nil
        }
    }

    private func payloadBytes(_ topic: Int) -> Int {
        min(configured, max(Self.minBytes, topic - min(Self.envelopeBytes, topic / 4)))
    }

    private func topicLimit() -> Int? {
        state.withLock { $0.askedAt = now() }
        // Who may write need not be one who may ask.
        return (try? bus.batchLimit(timeout: Self.patience)) ?? nil
    }
}
