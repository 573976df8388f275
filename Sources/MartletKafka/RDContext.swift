import CRdKafka
import Foundation
import Logging
import MartletBus
import Synchronization

/// The context of a client's callbacks: where logs and statistics go, and the errors that have not been delivered yet.
///
/// librdkafka holds it as the client's opaque pointer. ``RDClient`` keeps it alive until the client is destroyed; no
/// callback comes after that.
final class RDContext: Sendable {
    /// An error that concerns the client as a whole, rather than one message or one call.
    struct Failure: Sendable {
        var code: rd_kafka_resp_err_t
        var reason: String
    }

    /// Enough to see what is going on. During a long outage, librdkafka reports the same errors with every connection
    /// attempt.
    private static let failuresMax = 32

    let logger: Logger
    let describe: RDErrorDescriber
    /// The token file for OAUTHBEARER, if the client logs in that way.
    let tokenFile: KafkaTokenFile?
    let tokenSchedule = Mutex(TokenSchedule())
    private let metrics: KafkaMetrics?
    private let failures = Mutex<[Failure]>([])
    private let hangUp = Mutex<String?>(nil)
    /// Signaled when there is something to read.
    let wake: WakeSignal
    /// True if another client of the same role reports the metrics: this client has not taken over yet, or was
    /// replaced.
    let isSecond = Atomic(false)
    private let partitions = Atomic(0)
    /// The number of partitions of the topic, according to the client's last statistics. The client refreshes its
    /// metadata every few minutes. Nil until the first statistics with that number.
    var partitionCount: Int? {
        let count = partitions.load(ordering: .relaxed)
        return count > 0 ? count : nil
    }
    /// If true, the client's errors are caused by its own shutdown.
    let isClosing = Atomic(false)

    init(
        logger: Logger, describe: RDErrorDescriber, metrics: KafkaMetrics?, tokenFile: KafkaTokenFile? = nil,
        wake: WakeSignal = WakeSignal()
    ) {
        self.wake = wake
        self.logger = logger
        self.describe = describe
        self.tokenFile = tokenFile
        self.metrics = metrics
    }

    func add(_ failure: Failure) {
        failures.withLock { if $0.count < Self.failuresMax { $0.append(failure) } }
    }

    func takeFailures() -> [Failure] {
        failures.withLock {
            if $0.isEmpty { return [] }
            let taken = $0
            $0 = []
            return taken
        }
    }

    /// Returns and clears the log line about the last broker that closed a connection before it answered. It may be the
    /// only known reason for a missing answer.
    func takeHangUp() -> String? { hangUp.withLock { $0.take() } }

    /// - Parameter json: librdkafka's statistics, valid during the call only.
    func recordStatistics(_ json: UnsafeRawBufferPointer) {
        let statistics: KafkaStatistics
        do {
            statistics = try JSONDecoder().decode(KafkaStatistics.self, from: Data(json))
        } catch {
            // Only these statistics are lost.
            return logger.debug("librdkafka's statistics could not be read: \(error)")
        }
        partitions.store(statistics.partitionCount(of: describe.topic), ordering: .relaxed)
        if !isSecond.load(ordering: .relaxed) { metrics?.record(statistics) }
    }

    /// Reports the metrics of the role from now on, instead of another client.
    func takeOver(_ other: RDContext) {
        other.isSecond.store(true, ordering: .relaxed)
        isSecond.store(false, ordering: .relaxed)
        if let former = other.metrics { metrics?.takeOver(former) }
    }

    /// Notes that the client is destroyed, or abandoned: no more statistics will come.
    func recordEnd() {
        if !isSecond.load(ordering: .relaxed) { metrics?.recordEnd() }
    }

    /// Called on any of librdkafka's threads, and before the client is complete. Must not call into the client.
    func log(level: Int32, facility: String, message: String) {
        // These warnings concern intended behaviour: raw properties go to producers and consumers alike, the gapless
        // guarantee is enabled on purpose, and the embedded broker creates topics by itself.
        let isNoise =
            facility == "CONFWARN"
            && (message.contains("will be ignored by this") || message.contains("enable.gapless.guarantee"))
            || facility == "AUTOCREATE"
        let logLevel: Logger.Level =
            switch level {
            case _ where isNoise || isClosing.load(ordering: .relaxed): .debug
            case ...2: .critical
            case 3: .error
            case 4: .warning
            case 5: .notice
            case 6: .info
            default: .debug
            }
        if describe.isHangUp(facility: facility, message) { hangUp.withLock { $0 = message } }
        logger.log(level: logLevel, "\(message)", metadata: ["facility": "\(facility)"])
    }

    static func of(_ opaque: UnsafeMutableRawPointer?) -> RDContext? {
        opaque.map { Unmanaged<RDContext>.fromOpaque($0).takeUnretainedValue() }
    }
}
