import Foundation
import MartletAgent
package import MartletSync

/// The state of a running agent at one moment.
package struct AgentFacts: Sendable {
    package var now: ContinuousClock.Instant
    /// The wall clock, in milliseconds since 1970.
    package var milliseconds: Int64
    package var consumer: ConsumerProgress
    package var publisher: PublisherProgress

    package init(
        now: ContinuousClock.Instant, milliseconds: Int64, consumer: ConsumerProgress, publisher: PublisherProgress
    ) {
        self.now = now
        self.milliseconds = milliseconds
        self.consumer = consumer
        self.publisher = publisher
    }

    /// The present state.
    init(_ agent: Agent) {
        self.init(
            now: .now, milliseconds: WallClock.milliseconds, consumer: agent.consumer.currentProgress,
            publisher: agent.publisher.currentProgress)
    }

    package var lags: [ConsumerProgress.Lag] { consumer.lags(at: now, milliseconds: milliseconds) }
}
