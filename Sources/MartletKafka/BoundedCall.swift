import Foundation
import MartletBus

/// Calls that should end soon, but may never end.
package enum BoundedCall {
    /// Runs the body on a thread of its own, and waits for it at most until the deadline.
    ///
    /// - Returns: true if the body has ended; false if it is still running. Its thread then remains.
    package static func run(within deadline: Duration, _ body: @escaping @Sendable () -> Void) -> Bool {
        let finished = WakeSignal()
        let thread = Thread {
            body()
            finished.signal()
        }
        thread.name = "martlet-close"
        thread.start()
        return finished.wait(timeout: deadline)
    }
}
