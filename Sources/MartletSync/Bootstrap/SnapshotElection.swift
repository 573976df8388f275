import Foundation

/// Decides whether it is this node's turn to make a snapshot. Pure: all nodes look at the same topic, and each waits for
/// another while after a snapshot is due (docs/decisions/0016).
struct SnapshotElection {
    let node: NodeID
    let configuration: SnapshotConfiguration
    /// Since when this node has been looking.
    let since: Date

    /// What this node knows of itself.
    struct Standing {
        /// How far it has read, by partition.
        var positions: [Int32: Int64]
        /// True where transactions of others are known to be missing here.
        var hasGaps = false
        /// True while it waits for a snapshot itself.
        var isWaiting = false
    }

    /// How long whoever makes a snapshot may take for one message before it counts as gone.
    static let patience: TimeInterval = 300

    /// - Parameter snapshots: newest first.
    func isDue(_ snapshots: [SnapshotInfo], _ standing: Standing, now: Date) -> Bool {
        let interval = configuration.interval / .seconds(1)
        guard interval > 0, !standing.isWaiting else { return false }
        let newest = snapshots.first(where: \.isComplete)
        // One is being made.
        let isUnderWay = snapshots.contains { snapshot in
            snapshot.state == .unfinished && snapshot.maker != node
                && snapshot.arrived > newest?.arrived ?? .distantPast
                && now.timeIntervalSince(snapshot.arrived) < Self.patience
        }
        guard !isUnderWay else { return false }
        var messages: Int64 = 0
        for (partition, next) in standing.positions where messages < configuration.minTransactions {
            messages += max(0, next - (newest?.positions[partition] ?? 0))
        }
        guard messages >= configuration.minTransactions else { return false }
        let due = newest.map { $0.arrived.addingTimeInterval(interval) } ?? since
        return now >= due.addingTimeInterval(delay(newest?.maker, interval, standing))
    }

    /// Whoever made the last one goes on: compaction takes what it made before. The others wait, each for another while.
    private func delay(_ last: NodeID?, _ interval: TimeInterval, _ standing: Standing) -> TimeInterval {
        let window = last == nil ? min(60, interval / 4) : interval / 4
        let gaps = standing.hasGaps ? interval / 2 : 0
        return last == node ? gaps : gaps + window * (0.25 + 0.75 * node.fraction)
    }
}
