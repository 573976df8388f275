import CBaseline
import Foundation
import GRDB
import Logging
import MartletKafka
import MartletStore
import MartletSync

/// The time from a commit on one node until the row can be read on another, compared with a message of the same size
/// through the same broker, from produce to consume, in the same minute.
struct Latency {
    let run: Run
    let broker: Broker

    /// The variants take turns, so that the machine's other load affects all of them.
    private let turns = 5
    /// The number of samples in one turn.
    private var sampleCount: Int { run.isQuick ? 100 : 2000 }
    private let pause: UInt32 = 4000

    /// The times of events for one row, in seconds since its commit.
    private struct Sample {
        var sent: Double?
        /// Nil if the acknowledgement came after the row was visible.
        var acknowledged: Double?
        var applied: Double?
        var visible = 0.0
    }

    func measure() throws {
        guard let bootstrap = broker.bootstrap() else {
            return run.report.note("SKIPPED: there is no broker (--bootstrap)")
        }
        var bare: [Double] = []
        var relayed: [Double] = []
        var synced: [Sample] = []
        for _ in 0..<turns {
            bare += try roundTrips(bootstrap)
            relayed += try relays(bootstrap)
            synced += try commits(bootstrap)
        }
        let visible = synced.map(\.visible)
        run.report.compare(
            "p50", "ms", baseline: percentile(bare, 0.5) * 1000, martlet: percentile(visible, 0.5) * 1000, allowed: 1)
        run.report.compare(
            "p50 of C that writes what Martlet writes, in as many threads and commits", "ms",
            baseline: percentile(bare, 0.5) * 1000,
            martlet: percentile(relayed, 0.5) * 1000)
        run.report.compare(
            "p99", "ms", baseline: percentile(bare, 0.99) * 1000, martlet: percentile(visible, 0.99) * 1000, allowed: 10
        )
        run.report.compare(
            "p99.9", "ms", baseline: percentile(bare, 0.999) * 1000, martlet: percentile(visible, 0.999) * 1000)
        run.report.state("slowest of \(visible.count)", "ms", (visible.max() ?? 0) * 1000, below: 100)
        reportHistogram(bare, visible)
        reportSlowest(synced)
        run.report.note(
            """
            The publisher is signalled by the writer: what a watcher of the write-ahead log adds is not in these \
            figures.
            """)
    }

    private func reportHistogram(_ bare: [Double], _ synced: [Double]) {
        let limits = [0.5, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, .infinity]
        var low = 0.0
        for high in limits {
            func count(_ samples: [Double]) -> Int { samples.count { $0 * 1000 > low && $0 * 1000 <= high } }
            if count(bare) + count(synced) > 0 {
                let range = high.isInfinite ? "more than \(low) ms" : "\(low) to \(high) ms"
                run.report.note("\(range): \(count(bare)) bare, \(count(synced)) Martlet")
            }
            low = high
        }
    }

    /// Shows where the time went for the slowest rows.
    private func reportSlowest(_ samples: [Sample]) {
        func text(_ seconds: Double?) -> String { seconds.map { String(format: "%.1f ms", $0 * 1000) } ?? "later" }
        for (index, sample) in samples.enumerated().sorted(by: { $0.element.visible > $1.element.visible }).prefix(5) {
            run.report.note(
                """
                row \(index): sent \(text(sample.sent)), acknowledged \(text(sample.acknowledged)), applied \
                \(text(sample.applied)), seen \(text(sample.visible))
                """)
        }
    }

    private func roundTrips(_ bootstrap: String) throws -> [Double] {
        let topic = try Broker.makeTopic(bootstrap)
        let properties = KafkaProperties(bootstrap: bootstrap)
        var samples = [Double](repeating: 0, count: sampleCount)
        _ = try checked(
            KafkaProperties.withProperties(properties.producer) { producer, producerCount in
                KafkaProperties.withProperties(properties.consumer) { consumer, consumerCount in
                    baseline_round_trips(
                        producer, producerCount, consumer, consumerCount, topic, 200, Int32(samples.count),
                        Int32(pause), &samples)
                }
            })
        return samples
    }

    private func relays(_ bootstrap: String) throws -> [Double] {
        let topic = try Broker.makeTopic(bootstrap)
        let properties = KafkaProperties(bootstrap: bootstrap)
        let paths = [run.newFile(), run.newFile()]
        defer { paths.forEach(run.remove) }
        for path in paths {
            try Store.makeBenchmark(path, .uuid, run.settings).close()
            // Creates the engine's tables.
            try SyncEngine(path: path, store: run.settings.store).close()
        }
        let rows = Workload(rowCount: sampleCount + 20).rows
        var samples = [Double](repeating: 0, count: sampleCount)
        baseline_set_timer_slack(1)
        defer { baseline_set_timer_slack(0) }
        _ = try checked(
            KafkaProperties.withProperties(properties.producer) { producer, producerCount in
                KafkaProperties.withProperties(properties.consumer) { consumer, consumerCount in
                    baseline_relay(
                        producer, producerCount, consumer, consumerCount, topic, paths[0], paths[1],
                        run.settings.baseline, rows,
                        Int32(samples.count), Int32(pause), &samples)
                }
            })
        return samples
    }

    private func commits(_ bootstrap: String) throws -> [Sample] {
        let topic = try Broker.makeTopic(bootstrap)
        let bus = try KafkaBus(KafkaConfiguration(bootstrapServers: [bootstrap], topic: topic), logger: .quiet)
        let paths = [run.newFile(), run.newFile()]
        defer { paths.forEach(run.remove) }
        let store = try Store.makeBenchmark(paths[0], .uuid, run.settings)
        let engine = try SyncEngine(path: paths[0], store: run.settings.store)
        let publisher = try Publisher(engine: engine, bus: bus, store: run.settings.store)
        try Store.makeBenchmark(paths[1], .uuid, run.settings).close()
        let receiving = try SyncEngine(path: paths[1], store: run.settings.store)
        let consumer = Consumer(engine: receiving, bus: bus)
        let threads = DispatchGroup()
        for body in [{ @Sendable in publisher.run() }, { @Sendable in consumer.run() }] {
            threads.enter()
            Thread {
                body()
                threads.leave()
            }.start()
        }
        defer {
            publisher.wake.stop()
            consumer.stopSignal.stop()
            threads.wait()
            try? engine.close()
            try? receiving.close()
            try? store.close()
        }
        return try samples(store, publisher, consumer, paths[1])
    }

    private func samples(
        _ store: Store, _ publisher: Publisher, _ consumer: Consumer, _ target: String
    ) throws -> [Sample] {
        var options = Configuration()
        options.readonly = true
        let reader = try DatabaseQueue(path: target, configuration: options)
        defer { try? reader.close() }
        // Polls every 30 us instead of every 80: the moment at which the row appears is measured.
        baseline_set_timer_slack(1)
        defer { baseline_set_timer_slack(0) }
        let writer = SwiftWriter(keying: .uuid)
        // The first rows warm up: connections are made, metadata is read.
        let warmUp = 20
        let rows = Workload(rowCount: sampleCount + warmUp).swiftRows
        var samples: [Sample] = []
        for (index, row) in rows.enumerated() {
            usleep(pause)
            try store.write(author: "app") { try writer.insert($0, rows[index...index]) }
            let start = ContinuousClock.now
            publisher.wake.signal()
            // Each row is one transaction.
            let number = index + 1
            var sample = Sample()
            var isVisible = false
            while !isVisible {
                usleep(30)
                let elapsed = { (ContinuousClock.now - start) / .seconds(1) }
                if sample.acknowledged == nil {
                    let progress = publisher.currentProgress
                    if sample.sent == nil, progress.sent >= number { sample.sent = elapsed() }
                    if progress.acknowledged >= number { sample.acknowledged = elapsed() }
                }
                if sample.applied == nil, consumer.currentProgress.applied >= number { sample.applied = elapsed() }
                // A single statement is a transaction of its own.
                isVisible = try reader.inDatabase { db in
                    try Bool.fetchOne(db.cachedStatement(sql: "SELECT 1 FROM task WHERE id = ?"), arguments: [row.uuid])
                        ?? false
                }
                guard elapsed() < 20 else { throw Failure("A row did not arrive: \(publisher.currentProgress)") }
                sample.visible = elapsed()
            }
            if index >= warmUp { samples.append(sample) }
        }
        return samples
    }
}
