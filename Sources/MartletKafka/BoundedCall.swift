import Dispatch
import Foundation

/// Calls that should end soon, and may never.
package enum BoundedCall {
    /// Runs the body on a thread of its own, and waits for it no longer than this.
    ///
    /// - Returns: false where it still runs. Its thread stays then.
    package static func run(within deadline: Duration, _ body: @escaping @Sendable () -> Void) -> Bool {
        let finished = DispatchSemaphore(value: 0)
        let thread = Thread {
            body()
            finished.signal()
        }
        thread.name = "martlet-close"
        thread.start()
        let milliseconds = Int(deadline / .milliseconds(1))
        return finished.wait(timeout: .now() + .milliseconds(milliseconds)) == .success
    }
}
