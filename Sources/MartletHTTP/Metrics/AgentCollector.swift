import Foundation
import MartletStore
package import MartletSync

/// Turns the state of an agent and its store into metrics. Pure.
package struct AgentCollector {
    package private(set) var families: [MetricFamily] = []

    package init() {}

    private mutating func gauge(_ name: String, _ samples: [([MetricFamily.Label], Double)]) {
        families.append(
            .init(
                name: name, kind: .gauge, help: MetricCatalog.help(name),
                samples: samples.map { .init(labels: $0, value: $1) }))
    }

    private mutating func gauge(_ name: String, _ value: some BinaryInteger) { gauge(name, [([], Double(value))]) }

    package mutating func add(_ facts: AgentFacts, isReady: Bool, topic: String) {
        let reading = facts.consumer
        gauge(AgentMetric.ready, isReady ? 1 : 0)
        gauge(AgentMetric.readHeldUp, reading.problem == nil ? 0 : 1)
        gauge(AgentMetric.publishHeldUp, facts.publisher.problem == nil ? 0 : 1)
        let lags = facts.lags
        let labels = lags.map { [MetricFamily.Label("partition", "\($0.partition)"), .init("topic", topic)] }
        gauge(AgentMetric.lagMessages, zip(labels, lags).map { ($0, Double($1.messages)) })
        gauge(AgentMetric.lagSeconds, zip(labels, lags).map { ($0, $1.time.inSeconds) })
        if let steppedAt = reading.steppedAt {
            gauge(
                AgentMetric.lastStep,
                [([], Double(facts.milliseconds) / 1000 - (facts.now - steppedAt).inSeconds)])
        }
        gauge(AgentMetric.inFlight, facts.publisher.inFlightBytes)
        let isAwaited = reading.hasUnfinishedSnapshot || reading.awaitsSnapshotSince != nil
        gauge(AgentMetric.snapshotAwaited, isAwaited ? 1 : 0)
        gauge(AgentMetric.snapshotMessages, reading.snapshot?.messageCount ?? 0)
        gauge(AgentMetric.snapshotLoaded, reading.snapshot?.messages ?? 0)
    }

    package mutating func add(_ status: SyncStatus) {
        gauge(
            AgentMetric.info,
            [([.init("name", status.name ?? ""), .init("node", status.node?.description ?? "")], 1)])
        gauge(AgentMetric.unpublished, status.unpublished)
        gauge(AgentMetric.parked, status.parkedCount)
        gauge(AgentMetric.quarantined, status.quarantinedCount)
        gauge(AgentMetric.conflicts, status.conflictCount)
        gauge(AgentMetric.divergences, status.divergenceCount)
        gauge(AgentMetric.lostTables, status.lostTables.count)
        let labels = status.origins.map { origin in
            [MetricFamily.Label("node", origin.node.description), .init("origin", origin.name ?? "")]
        }
        gauge(
            AgentMetric.missing,
            zip(labels, status.origins).map { ($0, Double($1.gaps.reduce(0) { $0 + Int64($1.count) })) })
        gauge(
            AgentMetric.heard,
            zip(labels, status.origins).compactMap { labels, origin in
                origin.heard.map { (labels, $0.timeIntervalSince1970) }
            })
        guard let offset = status.clockOffset else { return }
        gauge(
            AgentMetric.clockOffset,
            [
                ([.init("bound", "low")], Double(offset.lowerBound) / 1000),
                ([.init("bound", "high")], Double(offset.upperBound) / 1000),
            ])
    }

    package mutating func add(_ sizes: StoreReader.Sizes) {
        gauge(
            AgentMetric.storeBytes,
            [([.init("file", "database")], Double(sizes.database)), ([.init("file", "wal")], Double(sizes.wal))])
        gauge(AgentMetric.historyBytes, sizes.history.bytes)
        gauge(AgentMetric.historyHeld, sizes.heldBytes)
        gauge(AgentMetric.historyTransactions, sizes.history.transactions)
    }
}
