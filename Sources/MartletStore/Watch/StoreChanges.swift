/// Watches a store from outside.
public enum StoreChanges {
    /// Calls `changed` at once, and then after every commit to the store by any program (several commits may be
    /// reported together). Blocks the calling thread until `changed` throws, or the path leads to another file.
    ///
    /// - Throws: The error of `changed`; ``/MartletCore/StoreError`` with code `.moved` in the second case, or another
    ///   one if the store can't be read or watched.
    public static func watch(_ path: String, _ changed: () throws -> Void) throws {
        let watcher = try WALWatcher(store: path)
        var failure: (any Error)?
        try changed()
        watcher.run {
            guard failure == nil else { return }
            do {
                try watcher.checkIsInPlace()
                try changed()
            } catch {
                failure = error
                watcher.stop()
            }
        }
        if let failure { throw failure }
    }
}
