import CRdKafka
import Foundation
import Logging
import MartletBus
import Synchronization

/// What a client's callbacks need: where logs and statistics go, and the errors not yet handed to anybody.
///
/// librdkafka holds it as the client's opaque pointer. ``RDClient`` keeps it alive until the client is destroyed, after
/// which no callback comes.
final class RDContext: Sendable {
    /// An error that concerns the client as a whole, rather than one message or one call.
    struct Failure: Sendable {
        var code: rd_kafka_resp_err_t
        var reason: String
    }

    /// Enough to tell what is going on; during a long outage librdkafka repeats itself with every attempt to connect.
    private static let failuresMax = 32

    let logger: Logger
    let describe: RDErrorDescriber
    /// Where the token for OAUTHBEARER is, if that is how the client logs in.
    let tokenFile: KafkaTokenFile?
    private let metrics: KafkaMetrics?
    private let failures = Mutex<[Failure]>([])
    private let hangUp = Mutex<String?>(nil)
    /// Signaled when there is something for whoever reads.
    let wake: WakeSignal
    /// True while another client of the same role is the one to tell of: this one has not taken over yet, or was
    /// relieved.
    let isSecond = Atomic(false)
    private let partitions = Atomic(0)
    /// How many partitions the topic has, as the client was last told. It asks every few minutes by itself. Nil until
    /// the first statistics after that.
    var partitionCount: Int? {
        let count = partitions.load(ordering: .relaxed)
        return count > 0 ? count : nil
    }
    /// Once true, what the client complains of is its own end.
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

    /// The last time that a broker closed a connection before it answered, which may be all that is known of why there
    /// is no answer.
    func takeHangUp() -> String? { hangUp.withLock { $0.take() } }

    /// - Parameter json: librdkafka's statistics, valid during the call only.
    func recordStatistics(_ json: UnsafeRawBufferPointer) {
        let statistics: KafkaStatistics
        do {
            statistics = try JSONDecoder().decode(KafkaStatistics.self, from: Data(json))
        } catch {
            // Nothing but these figures is lost.
            return logger.debug("librdkafka's statistics could not be read: \(error)")
        }
        partitions.store(statistics.partitionCount(of: describe.topic), ordering: .relaxed)
        if !isSecond.load(ordering: .relaxed) { metrics?.record(statistics) }
    }

    /// The client is destroyed, or left behind: no statistics come any more.
    func recordEnd() {
        if !isSecond.load(ordering: .relaxed) { metrics?.recordEnd() }
    }

    /// Called on any of librdkafka's threads, and before the client is complete. Must not call into the client.
    func log(level: Int32, facility: String, message: String) {
        // Warnings of what is meant: raw properties reach producers and consumers alike, the gapless guarantee is
        // chosen, and the embedded broker makes topics by itself.
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
