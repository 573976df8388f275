import Foundation
import MartletHTTP
import MartletStore
import MartletSync
import Testing

@Suite struct AgentCollectorTests {
    private let node = NodeID(UUID())

    private func status() -> SyncStatus {
        SyncStatus(
            node: node, name: "desk", store: UUID(), unstampedCount: 2, lastSequence: 10, acknowledged: 7,
            confirmed: 7,
            partitions: [],
            origins: [
                .init(
                    node: node, name: "a\"} 1\nevil 2", applied: 9,
                    heard: Date(timeIntervalSince1970: 1_800_000_000.5), gaps: [2...3, 5...5])
            ],
            cursors: [], parkedCount: 3, quarantinedCount: 4, conflictCount: 5, divergenceCount: 6,
            clockOffset: -1500...250, lostTables: ["x": "gone"])
    }

    private func read(_ collector: AgentCollector) throws -> Exposition {
        try Exposition(PrometheusText.render(collector.families))
    }

    @Test(.enabled(if: Promtool.isThere, "promtool is not installed: scripts/install-dependencies.sh --test"))
    func promtoolAcceptsTheStatusOfTheStore() throws {
        var collector = AgentCollector()
        collector.add(status())
        try Promtool.check(PrometheusText.render(collector.families))
    }

    @Test func theCollectorReportsTheStatusOfTheStore() throws {
        var collector = AgentCollector()
        collector.add(status())
        let read = try read(collector)
        #expect(read.value("martlet_node_info", ["name": "desk", "node": "\(node)"]) == 1)
        #expect(read.value("martlet_unpublished_transactions") == 5)
        #expect(read.value("martlet_parked_changes") == 3)
        #expect(read.value("martlet_quarantined_messages") == 4)
        #expect(read.value("martlet_conflicts") == 5)
        #expect(read.value("martlet_divergences") == 6)
        #expect(read.value("martlet_missing_transactions", ["origin": "a\"} 1\nevil 2"]) == 3)
        #expect(read.value("martlet_origin_heard_timestamp_seconds") == 1_800_000_000.5)
        #expect(read.value("martlet_lost_tables") == 1)
        #expect(read.value("martlet_clock_offset_seconds", ["bound": "low"]) == -1.5)
        #expect(read.value("martlet_clock_offset_seconds", ["bound": "high"]) == 0.25)
        #expect(!read.samples.contains { $0.name == "evil" })
    }

    @Test func theCollectorReportsTheProgressOfTheAgent() throws {
        let now = ContinuousClock.now
        var consumer = ConsumerProgress(startedAt: now - .seconds(100))
        consumer.positions = [0: 5, 1: 5]
        consumer.ends = [0: 5, 1: 9]
        consumer.steppedAt = now - .seconds(2)
        consumer.problem = "x"
        consumer.awaitsSnapshotSince = Date(timeIntervalSince1970: 0)
        consumer.snapshot = SnapshotProgress(
            id: UUID(), makerName: "a", messages: 3, messageCount: 10, rows: 30, tombstones: 0, isFinished: false)
        var publisher = PublisherProgress(acknowledged: 5, advancedAt: now)
        publisher.inFlightBytes = 77
        var collector = AgentCollector()
        collector.add(
            AgentFacts(now: now, milliseconds: 1_800_000_000_000, consumer: consumer, publisher: publisher),
            isReady: false, topic: "notes")
        let read = try read(collector)
        #expect(read.value("martlet_ready") == 0)
        #expect(read.value("martlet_read_held_up") == 1)
        #expect(read.value("martlet_publish_held_up") == 0)
        #expect(read.value("martlet_partition_lag_messages", ["partition": "0", "topic": "notes"]) == 0)
        #expect(read.value("martlet_partition_lag_messages", ["partition": "1", "topic": "notes"]) == 4)
        #expect(read.value("martlet_partition_lag_seconds", ["partition": "1"]) == 100)
        #expect(read.value("martlet_last_read_timestamp_seconds") == 1_799_999_998)
        #expect(read.value("martlet_publisher_in_flight_bytes") == 77)
        #expect(read.value("martlet_snapshot_awaited") == 1)
        #expect(read.value("martlet_snapshot_messages") == 10)
        #expect(read.value("martlet_snapshot_loaded_messages") == 3)
    }

    @Test func theCollectorReportsTheSizesOfTheFiles() throws {
        var collector = AgentCollector()
        collector.add(.init(database: 1000, wal: 200, history: .init(bytes: 300, transactions: 4), heldBytes: 50))
        let read = try read(collector)
        #expect(read.value("martlet_store_bytes", ["file": "database"]) == 1000)
        #expect(read.value("martlet_store_bytes", ["file": "wal"]) == 200)
        #expect(read.value("martlet_history_bytes") == 300)
        #expect(read.value("martlet_history_held_bytes") == 50)
        #expect(read.value("martlet_history_transactions") == 4)
    }

    @Test func theCollectorReportsTheResourcesOfTheProcess() throws {
        let read = try Exposition(PrometheusText.render(ProcessFacts.families))
        let now = Date().timeIntervalSince1970
        #expect(try #require(read.value("process_resident_memory_bytes")) > 1_000_000)
        #expect(try #require(read.value("process_cpu_seconds_total")) > 0)
        #expect(try #require(read.value("process_open_fds")) > 3)
        let start = try #require(read.value("process_start_time_seconds"))
        #expect(start > now - 100_000 && start < now + 5)
    }
}
