package import Foundation

/// When snapshots arrived, by this node's clock where the topic's timestamps can't be right. Pure.
///
/// The timestamp of a message comes from a clock of the broker or of a producer. If that was ahead, or the timestamp is
/// forged, the snapshot would count as the newest one for as long, and no node would make another one. A snapshot has
/// arrived by the time it is seen.
package struct SnapshotArrivals {
    private var seen: [UUID: Date] = [:]

    package init() {}

    /// Returns the snapshots with the times of their arrival, newest first. Forgets those that the topic no longer has.
    package mutating func corrected(_ snapshots: [SnapshotInfo], now: Date) -> [SnapshotInfo] {
        let known = seen
        seen = [:]
        for snapshot in snapshots { seen[snapshot.id] = known[snapshot.id] ?? now }
        return snapshots.map { snapshot in
            var snapshot = snapshot
            snapshot.arrived = min(snapshot.arrived, seen[snapshot.id] ?? now)
            return snapshot
        }.sorted { ($0.arrived, $0.id.uuidString) > ($1.arrived, $1.id.uuidString) }
    }
}
