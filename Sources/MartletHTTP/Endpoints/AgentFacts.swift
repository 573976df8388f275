import Foundation
import MartletSync

/// The state of a running agent at one moment.
struct AgentFacts: Sendable {
    var now: ContinuousClock.Instant
    /// The wall clock, in milliseconds since 1970.
    var milliseconds: Int64
    var consumer: ConsumerProgress
    var publisher: PublisherProgress

    var lags: [ConsumerProgress.Lag] { consumer.lags(at: now, milliseconds: milliseconds) }
}
