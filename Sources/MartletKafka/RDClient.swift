import CRdKafka
import Logging
import MartletBus
import Synchronization

/// Owns one librdkafka client, and the topic and queue handles made from it.
///
/// A consumer reads by librdkafka's simple interface: the partitions that it is told to, each from an offset, into a
/// queue of its own. It is in no group, so that it needs no right on one, and no connection to who looks after it.
///
/// Whoever calls into the client holds a strong reference meanwhile; the last one to let go destroys it, which waits
/// for librdkafka's threads and so must not happen on one of them.
final class RDClient: Sendable {
    enum Kind {
        case producer, consumer
        /// A producer that is told whether it may write, and writes nothing (``KafkaAdmin/tryRights(topic:timeout:)``).
        case prober
        /// Stores the offsets of a group, and reads nothing.
        case committer

        var writes: Bool { self == .producer || self == .prober }
    }

    // Safe because librdkafka's handles may be used from any thread, and these are set once and freed in deinit.
    nonisolated(unsafe) let pointer: OpaquePointer
    /// A producer's main queue; what a consumer has read; what a committer is answered.
    nonisolated(unsafe) let queue: OpaquePointer
    /// The topic, for producers and consumers.
    nonisolated(unsafe) let topic: OpaquePointer?
    /// The partitions that are read.
    private let reading = Mutex<Set<Int32>>([])
    let context: RDContext
    private let kind: Kind

    /// Makes a client. Returns without waiting for a connection.
    ///
    /// - Throws: ``/MartletBus/BusError`` with code `.configuration`.
    init(
        _ kind: Kind, properties: [(name: String, value: String)], topic: String, context: RDContext
    ) throws(BusError) {
        guard let configuration = rd_kafka_conf_new() else {
            throw BusError(.other, "librdkafka could not make a configuration")
        }
        do throws(RDPropertyError) {
            for (name, value) in properties {
                try rdSetProperty(configuration, name, value)
            }
        } catch {
            rd_kafka_conf_destroy(configuration)
            throw BusError(
                .configuration, "\(error.name): \(error.reason)", hint: "Correct the Kafka setting \(error.name)")
        }
        Self.setCallbacks(configuration, kind)
        if context.tokenFile != nil { RDContext.setTokenCallback(configuration) }
        let retained = Unmanaged.passRetained(context)
        rd_kafka_conf_set_opaque(configuration, retained.toOpaque())
        var reason = ""
        let made = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer in
            buffer.initialize(repeating: 0)
            let made = rd_kafka_new(
                kind.writes ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER, configuration, buffer.baseAddress,
                buffer.count)
            reason = buffer.baseAddress.map { String(cString: $0) } ?? ""
            return made
        }
        guard let made else {
            // The configuration is librdkafka's only after success.
            rd_kafka_conf_destroy(configuration)
            retained.release()
            throw BusError(.configuration, reason, hint: "Correct the Kafka settings")
        }
        if context.tokenFile != nil, let reason = RDContext.enableTokenCallback(made) {
            rd_kafka_destroy(made)
            retained.release()
            throw BusError(.configuration, reason, hint: "Use the token file with the SASL mechanism OAUTHBEARER")
        }
        let queue = kind.writes ? rd_kafka_queue_get_main(made) : rd_kafka_queue_new(made)
        let topicHandle = kind == .committer ? nil : rd_kafka_topic_new(made, topic, nil)
        guard let queue, kind == .committer || topicHandle != nil else {
            if let queue { rd_kafka_queue_destroy(queue) }
            rd_kafka_destroy(made)
            retained.release()
            throw BusError(.configuration, "librdkafka refuses the topic \(topic)", hint: "Correct the topic's name")
        }
        self.pointer = made
        self.queue = queue
        self.topic = topicHandle
        self.context = context
        self.kind = kind
        if kind == .consumer { wakeReader() }
    }

    /// Whoever waits for messages hears of those, and of errors of the client as a whole, which come to its main queue.
    private func wakeReader() {
        let wake = Unmanaged.passUnretained(context).toOpaque()
        let main = rd_kafka_queue_get_main(pointer)
        for waited in [main, queue] {
            // Called on any thread of librdkafka, with the queue locked.
            rd_kafka_queue_cb_event_enable(waited, { _, context in RDContext.of(context)?.wake.signal() }, wake)
        }
        rd_kafka_queue_destroy(main)
    }

    // MARK: Reading

    /// Reads exactly these partitions from now on, each from its offset. What was read of others is forgotten.
    func begin(_ positions: [PartitionPosition]) throws(BusError) {
        let code = reading.withLock { reading in
            for partition in reading { rd_kafka_consume_stop(topic, partition) }
            reading = []
            for position in positions {
                guard rd_kafka_consume_start_queue(topic, position.partition, position.offset, queue) == 0 else {
                    return rd_kafka_last_error()
                }
                reading.insert(position.partition)
            }
            return RD_KAFKA_RESP_ERR_NO_ERROR
        }
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
            throw context.describe.error(code, doing: "assign partitions of topic \(context.describe.topic)")
        }
    }

    /// Takes at most so many messages and events of what was read, without waiting.
    func drain(_ maxCount: Int, _ reader: inout MessageReader, _ batch: inout ConsumerBatch) {
        guard maxCount > 0 else { return }
        withUnsafeTemporaryAllocation(of: UnsafeMutablePointer<rd_kafka_message_t>?.self, capacity: maxCount) {
            let count = rd_kafka_consume_batch_queue(queue, 0, $0.baseAddress, maxCount)
            guard count > 0 else { return }
            batch.messages.reserveCapacity(count)
            for message in $0.prefix(count) {
                guard let message else { continue }
                reader.read(message, into: &batch)
                rd_kafka_message_destroy(message)
            }
        }
    }

    /// Says up to where partitions were read and applied, for the statistics. No request is made.
    func note(_ positions: [PartitionPosition]) {
        for position in positions where position.offset > 0 {
            // librdkafka counts the message that was read last.
            rd_kafka_offset_store(topic, position.partition, position.offset - 1)
        }
    }

    /// Runs the callbacks for what has come to the main queue, without waiting.
    func serve() {
        // Each error ends its poll, see the error callback.
        for _ in 0..<Self.errorsMax where rd_kafka_poll(pointer, 0) == 0 { break }
    }

    private static let errorsMax = 32

    deinit {
        let handles = Handles(
            pointer: pointer, queue: queue, topic: topic, context: context, kind: kind,
            reading: reading.withLock(\.self))
        // librdkafka waits for its threads, and one of them may never end when its connection breaks at that moment
        // (seen with 2.0.2). Whoever reads must not wait with it.
        let isDestroyed = BoundedCall.run(within: Self.closeDeadline) { handles.destroy() }
        context.recordEnd()
        guard !isDestroyed else { return }
        context.logger.warning("Kafka client did not close; abandoning it and creating a new one")
    }

    private static let closeDeadline = Duration.seconds(5)

    /// What is given back, on whichever thread that happens.
    ///
    /// Safe because nobody else has the handles any more.
    private struct Handles: @unchecked Sendable {
        let pointer: OpaquePointer
        let queue: OpaquePointer
        let topic: OpaquePointer?
        let context: RDContext
        let kind: Kind
        let reading: Set<Int32>

        func destroy() {
            for partition in reading { rd_kafka_consume_stop(topic, partition) }
            if let topic { rd_kafka_topic_destroy(topic) }
            rd_kafka_queue_destroy(queue)
            // Nobody has joined a group, and closing would wait for a broker to hear of it.
            rd_kafka_destroy_flags(pointer, kind.writes ? 0 : Int32(RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE))
            Unmanaged.passUnretained(context).release()
        }
    }

    /// The error that stopped the client for good, if one did.
    var fatalError: BusError? {
        var reason = ""
        let code = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer in
            buffer.initialize(repeating: 0)
            let code = rd_kafka_fatal_error(pointer, buffer.baseAddress, buffer.count)
            reason = buffer.baseAddress.map { String(cString: $0) } ?? ""
            return code
        }
        guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
        let known = context.describe.error(code, doing: "write", reason: reason)
        // What is refused to this one is refused to the next.
        let hint =
            known.code == .unauthorized ? known.hint : "Martlet recreates the producer automatically"
        return BusError(.fatal, reason, hint: hint, underlyingCode: code.rawValue)
    }

    private static func setCallbacks(_ configuration: OpaquePointer, _ kind: Kind) {
        // Called on any thread of librdkafka.
        rd_kafka_conf_set_log_cb(configuration) { client, level, facility, text in
            guard let client, let facility, let text else { return }
            RDContext.of(rd_kafka_opaque(client))?
                .log(level: level, facility: String(cString: facility), message: String(cString: text))
        }
        switch kind {
        case .producer, .prober:
            // Everything comes as an event to the producer's own thread, see KafkaProducer+Serving.
            rd_kafka_conf_set_events(
                configuration, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_STATS)
        case .consumer, .committer:
            // Both are called on the thread that polls, from within the poll.
            rd_kafka_conf_set_error_cb(configuration) { client, code, reason, opaque in
                let code = rd_kafka_resp_err_t(rawValue: code)
                RDContext.of(opaque)?.add(.init(code: code, reason: reason.map { String(cString: $0) } ?? ""))
                // Ends the poll, so that its caller hears of the error now.
                rd_kafka_yield(client)
            }
            rd_kafka_conf_set_stats_cb(configuration) { _, json, size, opaque in
                RDContext.of(opaque)?.recordStatistics(UnsafeRawBufferPointer(start: json, count: size))
                return 0
            }
        }
    }
}
