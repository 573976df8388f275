import Foundation

/// Wakes one waiting thread. A signal that comes while nobody waits is kept, and ends the next wait at once.
public final class WakeSignal: Sendable {
    private let condition = NSCondition()
    // Safe because both are only touched with the condition locked.
    nonisolated(unsafe) private var isSignaled = false
    nonisolated(unsafe) private var stopped = false

    public init() {}

    /// True once ``stop()`` was called.
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

    /// Ends every wait from now on.
    public func stop() {
        condition.lock()
        stopped = true
        condition.broadcast()
        condition.unlock()
    }

    /// Waits for a signal, at most this long.
    ///
    /// - Returns: true for a signal, false when the time has passed or the signal was stopped.
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
