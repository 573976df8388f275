import CBaseline
import Foundation
import Logging
import MartletKafka
import MartletStore
import MartletSync

/// Sending a backlog to a broker, compared with a producer in C that sends the same bytes with the same settings; then
/// reading it on another node.
struct PublishBacklog {
    let run: Run
    let broker: Broker

    private var transactionCount: Int { run.isQuick ? 20_000 : 200_000 }

    func measure() throws {
        guard let bootstrap = broker.bootstrap() else {
            return run.report.note("SKIPPED: there is no broker (--bootstrap)")
        }
        let backlog = try Backlog(run, .uuid, transactionCount: transactionCount)
        defer { run.remove(backlog.path) }
        let stamped = try backlog.copy(run)
        defer { run.remove(stamped) }
        let engine = try SyncEngine(path: stamped, store: run.settings.store)
        _ = try engine.apply([], topic: "none")
        try engine.close()
        let messages = try MessageSource(path: stamped).messages(after: 0, limit: transactionCount)
        var topic = ""
        let rates = try interleaved(
            run.repetitions,
            [
                { try produceInC(bootstrap, messages) },
                { try produceInC(bootstrap, messages, registering: backlog) },
                {
                    let (rate, _) = try publish(bootstrap, stamped)
                    return rate
                },
                {
                    let (rate, used) = try publish(bootstrap, backlog.path)
                    topic = used
                    return rate
                },
            ])
        run.report.compare(
            "registering, sending, acknowledged", "transactions/s", baseline: rates[0], martlet: rates[3], goal: 0.2)
        run.report.compare("sending alone", "transactions/s", baseline: rates[0], martlet: rates[2])
        run.report.compare(
            "C that reads and writes what registering does, and then sends", "transactions/s", baseline: rates[0],
            martlet: rates[1])
        try catchUp(bootstrap, topic, backlog)
    }

    /// - Parameter backlog: a backlog whose transactions C enqueues first: it reads them and what is known of their
    ///   rows, and writes outbox, clocks and tombstones, but doesn't encode them.
    private func produceInC(_ bootstrap: String, _ messages: [IncomingMessage], registering backlog: Backlog? = nil)
        throws -> Double
    {
        let topic = try Broker.makeTopic(bootstrap)
        let path = try backlog?.copy(run)
        defer { if let path { run.remove(path) } }
        // Creates the tables.
        if let path { try SyncEngine(path: path, store: run.settings.store).close() }
        let database = path.flatMap { baseline_open($0, run.settings.baseline) }
        guard (path == nil) == (database == nil) else { throw Failure("The baseline failed.") }
        defer { if let database { baseline_close(database) } }
        // One buffer for all bytes, so that C can point into it.
        var bytes: [UInt8] = []
        var parts: [(offset: Int, count: Int)] = []
        func add(_ part: [UInt8]) {
            parts.append((bytes.count, part.count))
            bytes += part
        }
        for message in messages {
            add(message.key)
            add(message.payload)
            for header in message.headers { add(header.value) }
        }
        let names = messages.first?.headers.map { strdup($0.name) } ?? []
        defer { for name in names { free(name) } }
        let time = try bytes.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { throw Failure("There are no messages.") }
            let list = messages.indices.map { index in
                func part(_ number: Int) -> (UnsafeRawPointer, Int) {
                    let part = parts[index * (2 + names.count) + number]
                    return (UnsafeRawPointer(base + part.offset), part.count)
                }
                var message = baseline_message()
                (message.key, message.key_size) = part(0)
                (message.payload, message.payload_size) = part(1)
                message.header_count = Int32(names.count)
                let values = names.indices.map { part(2 + $0) }
                withUnsafeMutableBytes(of: &message.header_names) { memory in
                    for (index, name) in names.enumerated() {
                        memory.storeBytes(
                            of: UnsafePointer(name), toByteOffset: index * 8, as: UnsafePointer<CChar>?.self)
                    }
                }
                withUnsafeMutableBytes(of: &message.header_values) { memory in
                    for (index, value) in values.enumerated() {
                        memory.storeBytes(of: value.0, toByteOffset: index * 8, as: UnsafeRawPointer.self)
                    }
                }
                withUnsafeMutableBytes(of: &message.header_sizes) { memory in
                    for (index, value) in values.enumerated() {
                        memory.storeBytes(of: value.1, toByteOffset: index * 8, as: Int.self)
                    }
                }
                return message
            }
            let registering =
                if let database, let workload = backlog?.workload {
                    try checked(
                        baseline_register(
                            database, workload.rows, Int32(workload.rows.count), workload.operations, list,
                            Int32(list.count), 2000))
                } else {
                    0.0
                }
            let sending = KafkaProperties.withProperties(KafkaProperties(bootstrap: bootstrap).producer) {
                properties, count in
                baseline_produce(properties, count, topic, list, Int32(list.count))
            }
            return try registering + checked(sending)
        }
        return Double(messages.count) / time
    }

    /// Publishes everything in the store, like the agent.
    private func publish(_ bootstrap: String, _ source: String) throws -> (rate: Double, topic: String) {
        let topic = try Broker.makeTopic(bootstrap)
        let path = run.newFile()
        try FileManager.default.copyItem(atPath: source, toPath: path)
        defer { run.remove(path) }
        let engine = try SyncEngine(path: path, store: run.settings.store)
        let bus = try KafkaBus(KafkaConfiguration(bootstrapServers: [bootstrap], topic: topic), logger: .quiet)
        let publisher = try Publisher(engine: engine, bus: bus, store: run.settings.store)
        let time = try seconds {
            let deadline = ContinuousClock.now + .seconds(300)
            while publisher.currentProgress.acknowledged < transactionCount {
                let hasMore = publisher.step()
                // The last acknowledgement may have arrived in this step, in which case no signal follows.
                if !hasMore, publisher.currentProgress.acknowledged < transactionCount {
                    publisher.wake.wait(timeout: .seconds(1))
                }
                guard ContinuousClock.now < deadline else {
                    throw Failure("Publishing took too long: \(publisher.currentProgress)")
                }
            }
        }
        publisher.wake.stop()
        publisher.run()
        try engine.close()
        return (Double(transactionCount) / time, topic)
    }

    /// Reads a topic from its beginning and applies it, compared with upserts in C that read nothing.
    private func catchUp(_ bootstrap: String, _ topic: String, _ backlog: Backlog) throws {
        let count = transactionCount
        let rates = try interleaved(
            min(3, run.repetitions),
            [
                {
                    let path = run.newFile()
                    defer { run.remove(path) }
                    guard let database = baseline_open(path, run.settings.baseline) else {
                        throw Failure("The baseline failed.")
                    }
                    defer { baseline_close(database) }
                    baseline_execute(database, backlog.keying.schema)
                    return Double(count)
                        / (try checked(
                            baseline_apply(
                                database, backlog.keying.isUUID, backlog.workload.rows, backlog.workload.operations,
                                Int32(count), 500)))
                },
                {
                    let path = run.newFile()
                    defer { run.remove(path) }
                    try Store.makeBenchmark(path, backlog.keying, run.settings).close()
                    let engine = try SyncEngine(path: path, store: run.settings.store)
                    let consumer = Consumer(
                        engine: engine,
                        bus: try KafkaBus(
                            KafkaConfiguration(bootstrapServers: [bootstrap], topic: topic), logger: .quiet))
                    let time = try seconds {
                        let deadline = ContinuousClock.now + .seconds(300)
                        while consumer.currentProgress.applied < count {
                            consumer.step(timeout: .milliseconds(200))
                            guard ContinuousClock.now < deadline else {
                                throw Failure("Reading took too long: \(consumer.currentProgress)")
                            }
                        }
                    }
                    consumer.stopSignal.stop()
                    consumer.run()
                    try engine.close()
                    return Double(count) / time
                },
            ])
        run.report.compare(
            "catching up from the broker (C: 500 a commit, no broker)", "transactions/s", baseline: rates[0],
            martlet: rates[1])
    }
}
