import Foundation
import MartletHTTP
import MartletStore
import MartletSync
import Metrics

/// The cost of metrics, sealing and signatures: the same backlog through the same publisher and consumer, without them
/// and with them. The bus is in memory, so that it hides nothing: over a broker, sending takes several times as long.
struct Overhead {
    let run: Run

    private var transactionCount: Int { run.isQuick ? 20_000 : 100_000 }
    private let perCommit = 500

    private struct Variant {
        var name: String
        var isSealed = false
        var isSigned = false
        var isMetered = false
    }

    func measure() throws {
        let backlog = try Backlog(run, .uuid, transactionCount: transactionCount)
        defer { run.remove(backlog.path) }
        _ = try backlog.register(run)
        let variants = [
            Variant(name: "plain"), Variant(name: "metrics", isMetered: true), Variant(name: "sealed", isSealed: true),
            Variant(name: "sealed and signed", isSealed: true, isSigned: true),
            Variant(name: "all three", isSealed: true, isSigned: true, isMetered: true),
        ]
        var applying = variants.map { _ in [Double]() }
        let sending = try interleaved(
            run.repetitions,
            variants.indices.map { index in
                {
                    let (sent, applied) = try pass(variants[index], backlog)
                    applying[index].append(applied)
                    return sent
                }
            })
        for index in variants.indices.dropFirst() {
            let name = variants[index].name
            run.report.compare(
                "sending, \(name), to plain", "transactions/s", baseline: sending[0], martlet: sending[index])
            run.report.compare(
                "applying, \(name), to plain", "transactions/s", baseline: applying[0], martlet: applying[index])
        }
    }

    /// Sends the backlog of one node, and applies it on another.
    ///
    /// - Returns: transactions per second of each.
    private func pass(_ variant: Variant, _ backlog: Backlog) throws -> (sent: Double, applied: Double) {
        let source = try backlog.copy(run)
        let target = run.newFile()
        defer { [source, target].forEach(run.remove) }
        let ring = try KeyRing(parsing: KeyRing.adding("benchmark", makesCurrent: true, to: ""))
        let signingKey = variant.isSigned ? NodeSigningKey() : nil
        func security(_ configuration: SecurityConfiguration, _ key: NodeSigningKey?) -> MessageSecurity {
            MessageSecurity(configuration, keys: variant.isSealed ? FixedKeys(ring) : nil, signingKey: key)
        }
        let metrics: any MetricsFactory = variant.isMetered ? MetricsRegistry() : NOOPMetricsHandler.instance
        let bus = InMemoryBus(topic: "t")
        let sender = try SyncEngine(
            path: source, store: run.settings.store, security: security(SecurityConfiguration(), signingKey))
        let publisher = try Publisher(
            engine: sender, bus: bus, store: run.settings.store, log: .quiet, metrics: metrics)
        let count = transactionCount
        let sending = seconds(run) {
            while publisher.currentProgress.acknowledged < count { publisher.step() }
        }
        var rules = SecurityConfiguration()
        if let signingKey { rules.origins = [sender.node.uuid: [signingKey.publicKey]] }
        publisher.wake.stop()
        publisher.run()
        try sender.close()
        try Store.makeBenchmark(target, .uuid, run.settings).close()
        var configuration = SyncConfiguration()
        configuration.applyBatchTransactions = perCommit
        let receiver = try SyncEngine(
            path: target, store: run.settings.store, configuration: configuration, security: security(rules, nil))
        let consumer = Consumer(engine: receiver, bus: bus, log: .quiet, metrics: metrics)
        let applying = seconds(run) {
            while consumer.currentProgress.applied < count { consumer.step(timeout: .zero) }
        }
        consumer.stopSignal.stop()
        consumer.run()
        try receiver.close()
        return (Double(count) / sending, Double(count) / applying)
    }
}
