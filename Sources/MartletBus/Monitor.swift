import CMartletSystem

/// A lock, and a condition to wait for under it. Timeouts don't depend on the wall clock.
///
/// Don't use `NSCondition` instead: it waits until a time of the wall clock. If that clock is set back meanwhile, as by
/// the first answer of a time server, the wait lasts longer by as much.
final class Monitor: Sendable {
    // Safe because it is set once, its functions may be called on any thread, and it is freed in deinit.
    nonisolated(unsafe) private let handle = martlet_monitor_new()

    /// How long one wait lasts. The clock of these waits stands still while the machine sleeps, so that a longer one
    /// could end too late.
    private static let longestWait = Duration.seconds(60)

    deinit { martlet_monitor_free(handle) }

    func lock() { martlet_monitor_lock(handle) }
    func unlock() { martlet_monitor_unlock(handle) }

    func withLock<Result>(_ body: () throws -> Result) rethrows -> Result {
        lock()
        defer { unlock() }
        return try body()
    }

    /// Wakes all waiting threads.
    func broadcast() { martlet_monitor_broadcast(handle) }

    /// Waits to be woken. The caller holds the lock, and looks again after each wait: it may end for no reason.
    ///
    /// - Returns: false, at once, if the deadline has passed.
    func wait(until deadline: ContinuousClock.Instant) -> Bool {
        let left = deadline - .now
        guard left > .zero else { return false }
        martlet_monitor_wait(handle, Int64(min(left, Self.longestWait) / .nanoseconds(1)))
        return true
    }
}
