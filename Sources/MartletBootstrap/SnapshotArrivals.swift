import Foundation

/// When snapshots arrived, by this node's clock where the topic's timestamps can't be right. Pure.
///
/// The timestamp of a message comes from a clock of the broker or of a producer. If that was ahead, or the timestamp is
/// forged, the snapshot would count as the newest one for as long, and no node would make another one. A snapshot has
/// arrived by the time it is seen. How long ago that was doesn't depend on the wall clock.
package struct SnapshotArrivals: Sendable {
    private var seen: [UUID: ContinuousClock.Instant] = [:]

    package init() {}

    /// Returns the snapshots with the times of their arrival, newest first. Forgets those that the topic no longer has.
    package mutating func corrected(_ snapshots: [SnapshotInfo], at now: SnapshotCycle.Present) -> [SnapshotInfo] {
        let known = seen
        seen = [:]
        for snapshot in snapshots { seen[snapshot.id] = known[snapshot.id] ?? now.instant }
        return snapshots.map { snapshot in
            var snapshot = snapshot
            snapshot.arrived = min(snapshot.arrived, seen[snapshot.id].map(now.date(of:)) ?? now.date)
            return snapshot
        }.sorted { ($0.arrived, $0.id.uuidString) > ($1.arrived, $1.id.uuidString) }
    }
}
