/// How long a loop waits before its next attempt: briefly after the first failure, twice as long after each further
/// one, up to a limit.
///
/// A pure value. The loop itself waits, on whatever may end the wait early.
package struct Backoff: Sendable, Equatable {
    private let first: Duration
    private let limit: Duration
    /// The wait before the next attempt. Zero unless the last attempt failed.
    package private(set) var delay = Duration.zero

    package init(from first: Duration = .milliseconds(50), to limit: Duration = .seconds(5)) {
        self.first = first
        self.limit = limit
    }

    /// Notes that an attempt failed. Returns the wait before the next one.
    @discardableResult
    package mutating func fail() -> Duration {
        delay = min(limit, max(first, delay * 2))
        return delay
    }

    /// Notes that an attempt succeeded.
    package mutating func reset() { delay = .zero }
}
