/// Wakes a waiting thread. A signal that arrives while no thread waits is kept, and ends the next wait at once.
public final class WakeSignal: Sendable {
    private let monitor = Monitor()
    // Safe because both are only accessed while the monitor is locked.
    nonisolated(unsafe) private var isSignaled = false
    nonisolated(unsafe) private var stopped = false

    public init() {}

    /// True once ``stop()`` has been called.
    public var isStopped: Bool {
        monitor.withLock { stopped }
    }

    public func signal() {
        monitor.withLock {
            isSignaled = true
            monitor.broadcast()
        }
    }

    /// Ends all waits, present and future.
    public func stop() {
        monitor.withLock {
            stopped = true
            monitor.broadcast()
        }
    }

    /// Waits for a signal, for at most this long. Changes of the wall clock don't matter.
    ///
    /// - Returns: true if a signal came; false if the time passed or `stop()` was called.
    @discardableResult
    public func wait(timeout: Duration) -> Bool {
        let deadline = ContinuousClock.now + timeout
        return monitor.withLock {
            while !isSignaled && !stopped {
                if !monitor.wait(until: deadline) { break }
            }
            defer { isSignaled = false }
            return isSignaled && !stopped
        }
    }
}
