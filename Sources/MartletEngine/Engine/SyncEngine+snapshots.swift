import Foundation
import GRDB
package import MartletCore
import MartletReplica

extension SyncEngine {
    /// Returns the snapshots that were loaded, and the one that was begun and not finished.
    package func loadedSnapshots() throws -> (finished: Set<NodeID>, begun: NodeID?) {
        try read { db in
            var finished: Set<NodeID> = []
            var begun: NodeID?
            for row in try Row.fetchAll(db, sql: "SELECT id, finished FROM _martlet_snapshots") {
                guard let id = NodeID(bytes: row["id"] as Data) else { continue }
                if row["finished"] as Int64? == nil { begun = id } else { finished.insert(id) }
            }
            return (finished, begun)
        }
    }
}
