package import Foundation
package import MartletCore

/// Decides whether it is this node's turn to make a snapshot. Pure. All nodes look at the same topic, and each waits
/// for a different time after a snapshot is due (docs/decisions/0016).
package struct SnapshotElection {
    package let node: NodeID
    package let configuration: SnapshotConfiguration
    /// When this node began to look.
    package let since: Date

    package init(node: NodeID, configuration: SnapshotConfiguration, since: Date) {
        self.node = node
        self.configuration = configuration
        self.since = since
    }

    /// This node's own state.
    package struct Standing: Sendable {
        /// The offsets that it has read to, by partition.
        package var positions: [Int32: Int64]
        /// The ends of the partitions, as seen since the start.
        package var ends: [Int32: Int64] = [:]
        /// True if transactions of other nodes are known to be missing here.
        package var hasGaps = false
        /// True while it waits for a snapshot itself.
        package var isWaiting = false

        package init(positions: [Int32: Int64], hasGaps: Bool = false, isWaiting: Bool = false) {
            self.positions = positions
            self.hasGaps = hasGaps
            self.isWaiting = isWaiting
        }
    }

    /// How long the maker of a snapshot may take for one message before it counts as gone, in seconds.
    package static let patience: TimeInterval = 300

    /// - Parameter snapshots: newest first.
    package func isDue(_ snapshots: [SnapshotInfo], _ standing: Standing, now: Date) -> Bool {
        let interval = configuration.interval / .seconds(1)
        guard interval > 0, !standing.isWaiting else { return false }
        let newest = snapshots.first(where: \.isComplete)
        guard !isUnderWay(snapshots, newest, now) else { return false }
        var messages: Int64 = 0
        for (partition, next) in standing.positions where messages < configuration.minTransactions {
            let covered = newest?.positions[partition] ?? 0
            // Beyond the end of the partition, it covers another log: the topic was created again.
            let end = max(next, standing.ends[partition] ?? .max)
            messages += covered > end ? next : max(0, next - covered)
        }
        guard messages >= configuration.minTransactions else { return false }
        let due = newest.map { $0.arrived.addingTimeInterval(interval) } ?? since
        return now >= due.addingTimeInterval(delay(newest?.maker, interval, standing))
    }

    /// Returns true if another node is making a snapshot.
    private func isUnderWay(_ snapshots: [SnapshotInfo], _ newest: SnapshotInfo?, _ now: Date) -> Bool {
        snapshots.contains { snapshot in
            snapshot.state == .unfinished && snapshot.maker != node
                && snapshot.arrived > newest?.arrived ?? .distantPast
                && now.timeIntervalSince(snapshot.arrived) < Self.patience
        }
    }

    /// How this node reacts to another node's request for a snapshot.
    package enum Answer {
        /// Make a snapshot.
        case make
        /// Wait, because another node may make it.
        case wait
        /// Drop the request: a snapshot was made since, or this node can't make one that helps.
        case drop
    }

    /// The window in seconds in which the nodes that can answer a request take turns, each at a different moment.
    package static let requestWindow: TimeInterval = 20
    /// The time in seconds in which a node makes at most one snapshot on request: a snapshot is large, and a request is
    /// not.
    package static let requestPause: TimeInterval = 600

    /// Decides whether to make a snapshot for a node that waits for one. The number of messages since the last one does
    /// not count.
    ///
    /// - Parameters:
    ///   - request: when it was received.
    ///   - last: when this node last made a snapshot on request.
    ///   - snapshots: newest first.
    package func answer(
        request: Date, last: Date?, _ snapshots: [SnapshotInfo], _ standing: Standing, now: Date
    ) -> Answer {
        guard configuration.interval > .zero, !standing.isWaiting, !standing.hasGaps else { return .drop }
        let newest = snapshots.first(where: \.isComplete)
        if let newest, newest.arrived >= request { return .drop }
        if let last, now < last.addingTimeInterval(Self.requestPause) { return .drop }
        guard now >= request.addingTimeInterval(Self.requestWindow * node.fraction) else { return .wait }
        return isUnderWay(snapshots, newest, now) ? .wait : .make
    }

    /// The maker of the last snapshot goes first: compaction removes its older ones. The others wait, each for a
    /// different time.
    private func delay(_ last: NodeID?, _ interval: TimeInterval, _ standing: Standing) -> TimeInterval {
        let window = last == nil ? min(60, interval / 4) : interval / 4
        let gaps = standing.hasGaps ? interval / 2 : 0
        return last == node ? gaps : gaps + window * (0.25 + 0.75 * node.fraction)
    }
}
