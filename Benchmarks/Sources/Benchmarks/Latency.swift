import CBaseline
import Foundation
import GRDB
import Logging
import MartletKafka
import MartletStore
import MartletSync

/// From a commit on one node until the row can be read on another, against the way of a message of the same size through
/// the same broker, from produce to consume, in the same minute.
struct Latency {
    let run: Run
    let broker: Broker

    private var sampleCount: Int { run.isQuick ? 200 : 700 }
    private let pause: UInt32 = 4000

    func measure() throws {
        guard let bootstrap = broker.bootstrap() else { return run.report.note("SKIPPED: there is no broker (--bootstrap)") }
        var bare: [[Double]] = []
        var synced: [[Double]] = []
        for _ in 0..<min(3, run.repetitions) {
            bare.append(try roundTrips(bootstrap))
            synced.append(try commits(bootstrap))
        }
        func milliseconds(_ samples: [[Double]], _ part: Double) -> Double { median(samples.map { percentile($0, part) }) * 1000 }
        run.report.compare("p50", "ms", baseline: milliseconds(bare, 0.5), martlet: milliseconds(synced, 0.5), allowed: 1)
        run.report.compare("p99", "ms", baseline: milliseconds(bare, 0.99), martlet: milliseconds(synced, 0.99), allowed: 10)
        run.report.note("The publisher is signalled by the writer: what a watcher of the write-ahead log adds is not in these figures.")
    }

    private func roundTrips(_ bootstrap: String) throws -> [Double] {
        let topic = try Broker.makeTopic(bootstrap)
        let properties = KafkaProperties(bootstrap: bootstrap)
        var samples = [Double](repeating: 0, count: sampleCount)
        _ = try checked(
            KafkaProperties.withProperties(properties.producer) { producer, producerCount in
                KafkaProperties.withProperties(properties.consumer) { consumer, consumerCount in
                    baseline_round_trips(
                        producer, producerCount, consumer, consumerCount, topic, 200, Int32(samples.count), Int32(pause), &samples)
                }
            })
        return samples
    }

    private func commits(_ bootstrap: String) throws -> [Double] {
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
        return try samples(store, publisher, paths[1])
    }

    private func samples(_ store: Store, _ publisher: Publisher, _ target: String) throws -> [Double] {
        var options = Configuration()
        options.readonly = true
        let reader = try DatabaseQueue(path: target, configuration: options)
        defer { try? reader.close() }
        // It looks every 30 us, and not every 80: what is measured is when the row is there.
        baseline_set_timer_slack(1)
        defer { baseline_set_timer_slack(0) }
        let writer = SwiftWriter(keying: .uuid)
        // The first ones warm up: connections are made, metadata read.
        let warmUp = 20
        let rows = Workload(rowCount: sampleCount + warmUp).swiftRows
        var samples: [Double] = []
        for (index, row) in rows.enumerated() {
            usleep(pause)
            try store.write(author: "app") { try writer.insert($0, rows[index...index]) }
            let start = ContinuousClock.now
            publisher.wake.signal()
            var isVisible = false
            while !isVisible {
                usleep(30)
                // One statement is a transaction of its own.
                isVisible = try reader.inDatabase { db in
                    try Bool.fetchOne(db.cachedStatement(sql: "SELECT 1 FROM task WHERE id = ?"), arguments: [row.uuid]) ?? false
                }
                guard ContinuousClock.now - start < .seconds(20) else { throw Failure("A row did not arrive: \(publisher.currentProgress)") }
            }
            if index >= warmUp { samples.append((ContinuousClock.now - start) / .seconds(1)) }
        }
        return samples
    }
}
