import CRdKafka
import MartletTestSupport

/// A producer that sends a message in a Kafka transaction, and leaves the transaction open.
final class OpenTransaction {
    private let client: OpaquePointer

    init(_ servers: String, topic: String) throws {
        let configuration = rd_kafka_conf_new()
        for (name, value) in [
            ("bootstrap.servers", servers), ("transactional.id", "stranger-\(UInt64.random(in: 0 ... .max))"),
        ] {
            let code = rd_kafka_conf_set(configuration, name, value, nil, 0)
            guard code == RD_KAFKA_CONF_OK else { throw TestFailure("\(name) is refused") }
        }
        guard let client = rd_kafka_new(RD_KAFKA_PRODUCER, configuration, nil, 0) else {
            throw TestFailure("no producer")
        }
        self.client = client
        try Self.check(rd_kafka_init_transactions(client, 30_000))
        try Self.check(rd_kafka_begin_transaction(client))
        let handle = rd_kafka_topic_new(client, topic, nil)
        defer { rd_kafka_topic_destroy(handle) }
        let code = martlet_rd_produce(client, handle, nil, 0, "stranger", 8, nil, nil)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR, rd_kafka_flush(client, 30_000) == RD_KAFKA_RESP_ERR_NO_ERROR else {
            throw TestFailure("the broker takes nothing")
        }
    }

    private static func check(_ error: OpaquePointer?) throws {
        guard let error else { return }
        defer { rd_kafka_error_destroy(error) }
        throw TestFailure(String(cString: rd_kafka_error_string(error)))
    }

    /// Aborts the transaction.
    func close() {
        if let error = rd_kafka_abort_transaction(client, 30_000) { rd_kafka_error_destroy(error) }
        rd_kafka_destroy(client)
    }
}
