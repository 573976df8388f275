/// When a token file was last read, and whether it is to be read although librdkafka does not ask. Pure.
///
/// librdkafka asks at a time of the wall clock. Once the clock was set back, it would ask only when the clock has
/// reached that time again, and meanwhile log in with a token that has expired.
package struct TokenSchedule: Sendable {
    /// librdkafka asks after 48 seconds, and ten seconds after a failure.
    package static let patience = Duration.seconds(60)

    private var readAt: ContinuousClock.Instant?

    package init() {}

    package mutating func noteReading(at now: ContinuousClock.Instant) { readAt = now }

    /// Returns whether to read the file now. librdkafka itself asks for the first token.
    package func isOverdue(at now: ContinuousClock.Instant) -> Bool {
        readAt.map { now - $0 > Self.patience } ?? false
    }
}
