import Foundation

/// Reports commits to a store by any program, on a thread of its own, which ends when this is released.
package final class CommitWatch: Sendable {
    private let watcher: WALWatcher

    /// - Parameter changed: Is called after each commit from here on, or once for several.
    /// - Throws: ``/MartletCore/StoreError`` if the store can't be read, or if the kernel has no watch left.
    package init(store path: String, _ changed: @escaping @Sendable () -> Void) throws {
        let watcher = try WALWatcher(store: path)
        self.watcher = watcher
        let thread = Thread { watcher.run(changed) }
        // Set before the thread starts: a thread that sets its own name may run before Thread knows it.
        thread.name = "martlet-watch"
        thread.start()
    }

    deinit { watcher.stop() }
}
