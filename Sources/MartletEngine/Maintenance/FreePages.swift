import MartletReplica
import MartletStore

/// Gives free pages of the store's file back to the file system.
package struct FreePages {
    /// How many pages one transaction gives back. Other writers wait while it moves as many, 1 MiB usually.
    package static let slice: Int64 = 256

    let session: ReplicaSession

    /// Others can write between the slices. While a long transaction of another connection keeps the write-ahead log
    /// from restarting, each slice makes the log longer and the file no smaller, so the rest is left for the next time.
    ///
    /// - Parameter isStopped: called between SQLite transactions; true leaves the rest for the next time.
    /// - Returns: how many pages were given back.
    /// - Throws: ``/MartletCore/StoreError`` with code `.busy` if another program keeps the write lock. What was given
    ///   back until then stays so.
    func giveBack(_ count: Int64, isStopped: () -> Bool) throws -> Int64 {
        var given: Int64 = 0
        while given < count, !isStopped() {
            let slice = try session.write { try FileSpace.giveBack($0, atMost: min(Self.slice, count - given)) }
            // Others may have used the pages by now.
            guard slice > 0 else { break }
            given += slice
            if session.checkpointer.isHeld { break }
        }
        if given > 0 { try session.startCheckpoint() }
        return given
    }
}
