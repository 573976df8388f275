import CRdKafka
import Foundation
import Logging
import MartletBus
import Synchronization

/// The thread of one producer: waits for librdkafka's events and turns them into acknowledgements.
final class ProducerPoller: Sendable {
    /// The maximum time of one wait for events. It only determines how soon a purge is repeated.
    private static let waitMilliseconds: Int32 = 100

    private let client: Mutex<RDClient?>
    private let acknowledge: @Sendable (Acknowledgement) -> Void
    private let finished = DispatchGroup()
    /// Locked from the time when librdkafka releases messages until their acknowledgements are delivered.
    private let handingOut = Mutex(())

    init(_ client: RDClient, acknowledge: @escaping @Sendable (Acknowledgement) -> Void) {
        self.client = Mutex(client)
        self.acknowledge = acknowledge
    }

    func start() {
        finished.enter()
        let thread = Thread { [self] in
            serve()
            // By now this thread holds no reference to the client, so a caller of `join()` may rely on its end.
            finished.leave()
        }
        thread.name = "martlet-producer"
        thread.start()
    }

    /// Drops all messages, and ends the thread once each of them is acknowledged. No message may be sent afterwards.
    func stop(_ client: RDClient) {
        client.context.isClosing.store(true, ordering: .sequentiallyConsistent)
        rd_kafka_queue_yield(client.queue)
    }

    /// Waits for the end of the thread.
    func join() {
        finished.wait()
    }

    private func serve() {
        guard let client = client.withLock({ $0.take() }) else { return }
        while true {
            if client.context.isClosing.load(ordering: .sequentiallyConsistent) {
                if rd_kafka_outq_len(client.pointer) == 0 { return }
                // The purge is repeated, since a batch that moves between two queues can escape one purge.
                rd_kafka_purge(
                    client.pointer,
                    RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING)
            }
            client.context.refreshOverdueToken(of: client.pointer)
            guard let event = rd_kafka_queue_poll(client.queue, Self.waitMilliseconds) else { continue }
            var acknowledgements: [Acknowledgement] = []
            read(event, client, &acknowledgements)
            handingOut.withLock { _ in
                // The event is destroyed first, because its messages occupy the queue until then, and a caller that
                // waited for an acknowledgement to free room must find that room.
                rd_kafka_event_destroy(event)
                for acknowledgement in acknowledgements { acknowledge(acknowledgement) }
            }
        }
    }

    /// Waits until every acknowledgement that librdkafka counts as done is delivered.
    func waitForHandingOut() {
        handingOut.withLock { _ in }
    }

    private func read(_ event: OpaquePointer, _ client: RDClient, _ acknowledgements: inout [Acknowledgement]) {
        switch rd_kafka_event_type(event) {
        case RD_KAFKA_EVENT_DR:
            acknowledgements.reserveCapacity(rd_kafka_event_message_count(event))
            while let message = rd_kafka_event_message_next(event) {
                acknowledgements.append(acknowledgement(message, client))
            }
        case RD_KAFKA_EVENT_ERROR:
            log(event, client)
        case RD_KAFKA_EVENT_STATS:
            if let json = rd_kafka_event_stats(event) {
                client.context.recordStatistics(UnsafeRawBufferPointer(start: json, count: strlen(json)))
            }
        default:
            break
        }
    }

    private func acknowledgement(
        _ message: UnsafePointer<rd_kafka_message_t>, _ client: RDClient
    ) -> Acknowledgement {
        let tag = UInt64(UInt(bitPattern: message.pointee._private))
        let code = message.pointee.err
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
            return Acknowledgement(tag: tag, result: .failure(failure(code, client)))
        }
        let position = PartitionPosition(partition: message.pointee.partition, offset: message.pointee.offset)
        return Acknowledgement(tag: tag, result: .success(position))
    }

    private func failure(_ code: rd_kafka_resp_err_t, _ client: RDClient) -> BusError {
        var error = client.context.describe.error(code, doing: "deliver a message")
        // librdkafka also purges after a fatal error. Only a purge of this class means that the producer was closed.
        if error.code == .closed, !client.context.isClosing.load(ordering: .sequentiallyConsistent) {
            error = client.fatalError ?? error
        }
        return error
    }

    private func log(_ event: OpaquePointer, _ client: RDClient) {
        let code = rd_kafka_event_error(event)
        let reason = rd_kafka_event_error_string(event).map { String(cString: $0) }
        let error = client.fatalError ?? client.context.describe.error(code, doing: "continue", reason: reason)
        // Only logging loses nothing: the messages concerned stay queued or fail with their own acknowledgement.
        // librdkafka logs connection problems itself.
        let isKnown = error.isRetriable || client.context.isClosing.load(ordering: .relaxed)
        client.context.logger.log(
            level: isKnown ? .debug : .error, "Producer error", metadata: ["error": "\(error)"])
    }
}
