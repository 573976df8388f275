import Foundation

/// Decides whether it is this node's turn to make a snapshot. Pure: all nodes look at the same topic, and each waits
/// for another while after a snapshot is due (docs/decisions/0016).
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
        guard !isUnderWay(snapshots, newest, now) else { return false }
        var messages: Int64 = 0
        for (partition, next) in standing.positions where messages < configuration.minTransactions {
            messages += max(0, next - (newest?.positions[partition] ?? 0))
        }
        guard messages >= configuration.minTransactions else { return false }
        let due = newest.map { $0.arrived.addingTimeInterval(interval) } ?? since
        return now >= due.addingTimeInterval(delay(newest?.maker, interval, standing))
    }

    /// True where another node is making one.
    private func isUnderWay(_ snapshots: [SnapshotInfo], _ newest: SnapshotInfo?, _ now: Date) -> Bool {
        snapshots.contains { snapshot in
            snapshot.state == .unfinished && snapshot.maker != node
                && snapshot.arrived > newest?.arrived ?? .distantPast
                && now.timeIntervalSince(snapshot.arrived) < Self.patience
        }
    }

    /// What becomes of another node's wish for a snapshot.
    enum Answer {
        /// Make one.
        case make
        /// Another node may make it.
        case wait
        /// One was made since, or this node can't make one that helps.
        case drop
    }

    /// Within this time each node that can makes it its turn to answer a wish, each at another moment.
    static let wishWindow: TimeInterval = 20
    /// No node makes more than one for wishes in this time: a snapshot is large, and a wish is not.
    static let wishPause: TimeInterval = 600

    /// Whether to make a snapshot for a node that waits for one. How much has come since the last one does not count.
    ///
    /// - Parameters:
    ///   - wish: when it was heard of.
    ///   - last: when this node last made one for a wish.
    ///   - snapshots: newest first.
    func answer(
        wish: Date, last: Date?, _ snapshots: [SnapshotInfo], _ standing: Standing, now: Date
    ) -> Answer {
        guard configuration.interval > .zero, !standing.isWaiting, !standing.hasGaps else { return .drop }
        let newest = snapshots.first(where: \.isComplete)
        if let newest, newest.arrived >= wish { return .drop }
        if let last, now < last.addingTimeInterval(Self.wishPause) { return .drop }
        guard now >= wish.addingTimeInterval(Self.wishWindow * node.fraction) else { return .wait }
        return isUnderWay(snapshots, newest, now) ? .wait : .make
    }

    /// Whoever made the last one goes on: compaction takes what it made before. The others wait, each for another
    /// while.
    private func delay(_ last: NodeID?, _ interval: TimeInterval, _ standing: Standing) -> TimeInterval {
        let window = last == nil ? min(60, interval / 4) : interval / 4
        let gaps = standing.hasGaps ? interval / 2 : 0
        return last == node ? gaps : gaps + window * (0.25 + 0.75 * node.fraction)
    }
}
