import Foundation
package import MartletCore
import MartletReplica

extension SyncEngine {
    /// Returns the snapshots that were loaded, and the one that was begun and not finished.
    package func loadedSnapshots() throws -> (finished: Set<NodeID>, begun: NodeID?) {
        try read(SnapshotPlace.all)
    }
}
