package import MartletMerge
import MartletReplica
import MartletStore
package import MartletWire

extension SyncEngine {
    /// Returns the version vector of the enqueued transactions that are in the store.
    package func knownVector() throws -> VersionVector {
        try read { db in
            try VersionVector(WireSnapshotOrigin.all(db, own: node, name: ""))
        }
    }

    /// Returns true if this store has all transactions of other nodes that a snapshot has.
    package func hasAll(of header: WireSnapshotHeader) throws -> Bool {
        var theirs = try VersionVector(header.origins)
        theirs.sets[node] = nil
        return try knownVector().covers(theirs)
    }
}
