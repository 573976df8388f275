package import MartletBus
import Synchronization

/// The size limits of messages to one topic, and of batches of them. Usable from any thread.
///
/// The configured limit holds until the broker refuses a message. Then this object asks the broker for the topic's own
/// limit; if the broker doesn't tell, it halves the limit. It asks again every ten minutes, to notice a limit that was
/// raised.
package final class MessageLimit: Sendable {
    private struct State {
        var messageBytes: Int
        /// Nil until the broker has refused something.
        var batchBytes: Int?
        /// The topic's limit, if something was refused that keeps to it. Nil while the limit can be trusted.
        var refutedBytes: Int?
        var askedAt: ContinuousClock.Instant?
    }

    /// The bytes that a message needs beside its payload (key, headers, framing), with some to spare. At most a quarter
    /// of a small limit is set aside for them.
    private static let envelopeBytes = 4096
    private static let minBytes = 1000
    /// How often the broker is asked again while its limit is the smaller one.
    private static let interval = Duration.seconds(600)
    private static let patience = Duration.seconds(5)

    private let bus: any Bus
    private let configured: Int
    private let now: @Sendable () -> ContinuousClock.Instant
    private let state: Mutex<State>

    /// - Parameter configured: the largest payload that this node's configuration allows, in bytes.
    package init(_ bus: any Bus, configured: Int, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        self.bus = bus
        self.configured = configured
        self.now = now
        state = Mutex(State(messageBytes: configured))
    }

    /// The largest payload, in bytes.
    package var messageBytes: Int { state.withLock { $0.messageBytes } }

    /// The largest batch, in bytes. Nil leaves the choice to the bus.
    package var batchBytes: Int? { state.withLock { $0.batchBytes } }

    /// Lowers the limits after the broker refused a message or a batch. Asks the broker for the topic's limit; blocks
    /// for at most five seconds.
    package func noteRefused() {
        let topic = topicLimit()
        state.withLock { state in
            // If the broker refuses what fits its stated limit, that limit can't be trusted.
            let refused = state.batchBytes ?? .max
            if let topic, topic < refused {
                state.batchBytes = topic
                state.messageBytes = payloadBytes(topic)
                state.refutedBytes = nil
            } else {
                state.refutedBytes = topic
                state.messageBytes = max(Self.minBytes, state.messageBytes / 2)
                state.batchBytes = state.messageBytes + Self.envelopeBytes
            }
        }
    }

    /// Asks the broker again if its limit holds messages down and the last request is long enough ago. Blocks like
    /// ``noteRefused()``.
    package func refresh() {
        let isDue = state.withLock { state in
            state.batchBytes != nil && state.askedAt.map { now() - $0 > Self.interval } ?? true
        }
        guard isDue, let topic = topicLimit() else { return }
        state.withLock { state in
            // A limit that was lowered shows itself by a refusal.
            guard topic > state.batchBytes ?? 0, topic > state.refutedBytes ?? 0 else { return }
            state.messageBytes = payloadBytes(topic)
            state.batchBytes = state.messageBytes < configured ? topic : nil
        }
    }

    private func payloadBytes(_ topic: Int) -> Int {
        min(configured, max(Self.minBytes, topic - min(Self.envelopeBytes, topic / 4)))
    }

    private func topicLimit() -> Int? {
        state.withLock { $0.askedAt = now() }
        // A client that may write need not have the right to read the topic's configuration.
        return (try? bus.batchLimit(timeout: Self.patience)) ?? nil
    }
}
