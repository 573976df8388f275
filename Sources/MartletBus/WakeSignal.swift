import Foundation

/// Wakes a waiting thread. A signal that arrives while no thread waits is kept, and ends the next wait at once.
public final class WakeSignal: Sendable {
    private let condition = NSCondition()
    // Safe because both are only accessed while the condition is locked.
    nonisolated(unsafe) private var isSignaled = false
    nonisolated(unsafe) private var stopped = false

    public init() {}

    /// True once ``stop()`` has been called.
    public var isStopped: Bool {
        condition.lock()
        defer { condition.unlock() }
        return stopped
    }

    public func signal() {
        condition.lock()
        isSignaled = true
        condition.broadcast()
        condition.unlock()
    }

    /// Ends all waits, present and future.
    public func stop() {
        condition.lock()
        stopped = true
        condition.broadcast()
        condition.unlock()
    }

    /// Waits for a signal, for at most this long.
    ///
    /// - Returns: true if a signal came; false if the time passed or `stop()` was called.
    @discardableResult
    public func wait(timeout: Duration) -> Bool {
        let deadline = Date(timeIntervalSinceNow: timeout / .seconds(1))
        condition.lock()
        defer { condition.unlock() }
        while !isSignaled && !stopped {
            if !condition.wait(until: deadline) { break }
        }
        defer { isSignaled = false }
        return isSignaled && !stopped
    }
}
