import Foundation
package import MartletCore
import MartletReplica
import Synchronization

extension SyncEngine {
    /// Returns the snapshots that were loaded, and the one that was begun and not finished.
    package func loadedSnapshots() throws -> (finished: Set<NodeID>, begun: NodeID?) {
        try read(SnapshotPlace.all)
    }

    /// Returns true while this node waits for a snapshot: it lacks messages that the topic has dropped, or has loaded a
    /// snapshot in part.
    package func awaitsSnapshot() throws -> Bool {
        try !wantedOffsets().isEmpty || loadedSnapshots().begun != nil
    }

    /// Returns true while this node waits for a snapshot, and another node has to make it. A snapshot that is loaded in
    /// part is loaded to its end, as long as it is on the topic.
    package func needsSnapshot() throws -> Bool {
        if try loadedSnapshots().begun != nil { return lacksSnapshot.load(ordering: .relaxed) }
        return try !wantedOffsets().isEmpty
    }
}
