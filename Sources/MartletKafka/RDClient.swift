import CRdKafka
import Logging
import MartletBus
import Synchronization

/// Owns one librdkafka client, and the topic and queue handles created from it.
///
/// A consumer uses librdkafka's simple consumer interface: it reads the partitions that it is told to, each from an
/// offset, into a queue of its own. It is in no group, so it needs neither a right on one nor a connection to a group
/// coordinator.
///
/// Every caller holds a strong reference to the client during the call. The last one to release it destroys the client.
/// That waits for librdkafka's threads, so it must not happen on one of them.
final class RDClient: Sendable {
    enum Kind {
        case producer, consumer
        /// A producer that only tests whether it may write, and writes nothing
        /// (``KafkaAdmin/tryRights(topic:timeout:)``).
        case prober
        /// Stores a group's offsets, and reads nothing.
        case committer

        var writes: Bool { self == .producer || self == .prober }
    }

    // Safe because librdkafka's handles may be used from any thread, and these are set once and freed in deinit.
    nonisolated(unsafe) let pointer: OpaquePointer
    /// The main queue of a producer, the queue of messages read by a consumer, or the queue of answers to a committer.
    nonisolated(unsafe) let queue: OpaquePointer
    /// The topic, for producers and consumers.
    nonisolated(unsafe) let topic: OpaquePointer?
    /// The partitions being read.
    private let reading = Mutex<Set<Int32>>([])
    let context: RDContext
    private let kind: Kind

    /// Creates a client. Returns without waiting for a connection.
    ///
    /// - Throws: ``/MartletBus/BusError`` with code `.configuration`, or `.other` if librdkafka can't create a
    ///   configuration.
    init(
        _ kind: Kind, properties: [(name: String, value: String)], topic: String, context: RDContext
    ) throws(BusError) {
        guard let configuration = rd_kafka_conf_new() else {
            throw BusError(.other, "librdkafka could not create a configuration")
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
            // librdkafka owns the configuration only after success.
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

    /// Signals a waiting reader when there are messages, or errors of the client as a whole, which go to its main
    /// queue.
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

    /// Reads exactly these partitions from now on, each from its offset. Discards messages that were fetched before.
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

    /// Takes at most `maxCount` of the messages and events that have been read, without waiting.
    ///
    /// Takes one message at a time: librdkafka hands them out by their number, and the next one may be of any size.
    ///
    /// - Parameter maxBytes: no further message is taken once the batch has so many bytes of payloads.
    func drain(_ maxCount: Int, _ maxBytes: Int, _ reader: inout MessageReader, _ batch: inout ConsumerBatch) {
        var bytes = batch.payloadBytes
        var taken = 0
        while taken < maxCount, bytes < maxBytes {
            var next: UnsafeMutablePointer<rd_kafka_message_t>?
            guard rd_kafka_consume_batch_queue(queue, 0, &next, 1) == 1, let message = next else { return }
            taken += 1
            let known = batch.messages.count
            reader.read(message, into: &batch)
            rd_kafka_message_destroy(message)
            // Events are not messages.
            if batch.messages.count > known { bytes += batch.messages[known].payload.count }
        }
    }

    /// Stores the positions up to which partitions were read and applied, for the statistics. Makes no request.
    func note(_ positions: [PartitionPosition]) {
        for position in positions where position.offset > 0 {
            // librdkafka expects the offset of the last message that was read.
            rd_kafka_offset_store(topic, position.partition, position.offset - 1)
        }
    }

    /// Runs the callbacks for events in the main queue, without waiting.
    func serve() {
        context.refreshOverdueToken(of: pointer)
        // The error callback ends a poll, so this polls again after each error.
        for _ in 0..<Self.errorsMax where rd_kafka_poll(pointer, 0) == 0 { break }
    }

    private static let errorsMax = 32

    deinit {
        let handles = Handles(
            pointer: pointer, queue: queue, topic: topic, context: context, kind: kind,
            reading: reading.withLock(\.self))
        // librdkafka waits for its threads, and one of them may never end if its connection breaks at that moment (seen
        // with 2.0.2). The reading thread must not wait with it.
        let isDestroyed = BoundedCall.run(within: Self.closeDeadline) { handles.destroy() }
        context.recordEnd()
        guard !isDestroyed else { return }
        context.logger.warning("Kafka client did not close; abandoning it and creating a new one")
    }

    private static let closeDeadline = Duration.seconds(5)

    /// The handles to destroy, on whichever thread that happens.
    ///
    /// Safe because nothing else uses the handles any more.
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
            // The client has not joined a group, and closing would wait to tell a broker.
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
        // A new client would be refused in the same way.
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
            // Everything arrives as an event on the producer's own thread, see `ProducerPoller`.
            rd_kafka_conf_set_events(
                configuration, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_STATS)
        case .consumer, .committer:
            // Both callbacks run on the polling thread, within the poll.
            rd_kafka_conf_set_error_cb(configuration) { client, code, reason, opaque in
                let code = rd_kafka_resp_err_t(rawValue: code)
                RDContext.of(opaque)?.add(.init(code: code, reason: reason.map { String(cString: $0) } ?? ""))
                // This ends the poll, so that its caller learns of the error now.
                rd_kafka_yield(client)
            }
            rd_kafka_conf_set_stats_cb(configuration) { _, json, size, opaque in
                RDContext.of(opaque)?.recordStatistics(UnsafeRawBufferPointer(start: json, count: size))
                return 0
            }
        }
    }
}
