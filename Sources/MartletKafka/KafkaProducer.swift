import CRdKafka
import MartletBus
import Synchronization

/// A non-null pointer for empty keys and payloads. To Kafka, null and empty are different: a null key goes to any
/// partition, and a null payload is a tombstone.
///
/// Safe because it is never written to.
nonisolated(unsafe) private let emptyBytes = UnsafeRawPointer(
    UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1))

/// The writing end of a ``KafkaBus``: an idempotent producer, and one thread that hands out its acknowledgements.
final class KafkaProducer: BusProducer {
    /// Nil once closed. The lock is held while a message is enqueued, so that none slips in behind the purge.
    private let client: Mutex<RDClient?>
    private let poller: ProducerPoller
    private let messageMaxBytes: Int

    init(
        _ client: RDClient, _ configuration: KafkaConfiguration,
        acknowledge: @escaping @Sendable (Acknowledgement) -> Void
    ) {
        self.client = Mutex(client)
        self.poller = ProducerPoller(client, acknowledge: acknowledge)
        self.messageMaxBytes = configuration.messageMaxBytes
        poller.start()
    }

    deinit {
        close()
    }

    func send(_ message: OutgoingMessage) throws(BusError) {
        try client.withLock { client throws(BusError) in
            guard let client else { throw Self.closed }
            let code = Self.enqueue(message, client)
            if code != RD_KAFKA_RESP_ERR_NO_ERROR {
                throw refusal(code, client, message)
            }
        }
    }

    func flush(timeout: Duration) -> Bool {
        guard let client = client.withLock({ $0 }) else { return true }
        let isEmpty = rd_kafka_flush(client.pointer, timeout.millisecondsClamped) == RD_KAFKA_RESP_ERR_NO_ERROR
        poller.waitForHandingOut()
        return isEmpty
    }

    func close() {
        // Removes the client, so that the last reference goes at the end of this call or of a flush in progress.
        guard let client = client.withLock({ $0.take() }) else {
            poller.join()
            return
        }
        poller.stop(client)
        poller.join()
    }

    private static let closed = BusError(.closed, "the producer is closed")

    private static func enqueue(_ message: OutgoingMessage, _ client: RDClient) -> rd_kafka_resp_err_t {
        var headers: OpaquePointer?
        if !message.headers.isEmpty {
            headers = rd_kafka_headers_new(message.headers.count)
            for header in message.headers {
                var name = header.name
                let code = name.withUTF8 { name in
                    header.value.withUnsafeBytes { value in
                        rd_kafka_header_add(
                            headers, UnsafeRawPointer(name.baseAddress)?.assumingMemoryBound(to: CChar.self),
                            name.count, value.baseAddress ?? emptyBytes, value.count)
                    }
                }
                if code != RD_KAFKA_RESP_ERR_NO_ERROR {
                    rd_kafka_headers_destroy(headers)
                    return code
                }
            }
        }
        let code = message.key.withUnsafeBytes { key in
            message.payload.withUnsafeBytes { payload in
                let tag = UnsafeMutableRawPointer(bitPattern: UInt(message.tag))
                let value = message.isNull ? nil : payload.baseAddress ?? emptyBytes
                let size = message.isNull ? 0 : payload.count
                guard let topic = message.topic else {
                    return martlet_rd_produce(
                        client.pointer, client.topic, key.baseAddress ?? emptyBytes, key.count, value, size, headers,
                        tag)
                }
                return martlet_rd_produce_to(
                    client.pointer, topic, key.baseAddress ?? emptyBytes, key.count, value, size, headers, tag)
            }
        }
        if code != RD_KAFKA_RESP_ERR_NO_ERROR, let headers {
            rd_kafka_headers_destroy(headers)
        }
        return code
    }

    private func refusal(_ code: rd_kafka_resp_err_t, _ client: RDClient, _ message: OutgoingMessage) -> BusError {
        if code == RD_KAFKA_RESP_ERR__FATAL, let fatal = client.fatalError { return fatal }
        if code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE {
            let bytes = message.payload.count + message.key.count
            return client.context.describe.error(
                code, doing: "send a message of \(bytes) bytes",
                reason: "messageMaxBytes is \(messageMaxBytes)")
        }
        return client.context.describe.error(code, doing: "enqueue a message")
    }
}
