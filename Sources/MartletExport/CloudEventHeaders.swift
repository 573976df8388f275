import Foundation
import MartletBus

/// The headers that make a record a CloudEvent 1.0 in the binary content mode of its Kafka binding.
enum CloudEventHeaders {
    /// - Parameters:
    ///   - id: identifies the event: a record that is sent again has the same.
    ///   - time: milliseconds since 1970.
    static func headers(
        id: String, record: ExportRecord, table: ExportTable, prefix: String,
        _ transaction: (ExportTransaction, ExportOrder)?
    ) -> [MessageHeader] {
        var headers = [
            MessageHeader("ce_specversion", "1.0"),
            MessageHeader("ce_id", id),
            MessageHeader("ce_source", "/debezium/\(EnvelopeEncoder.connector)/\(prefix)"),
            MessageHeader("ce_type", "io.debezium.connector.\(EnvelopeEncoder.connector).DataChangeEvent"),
            MessageHeader("ce_time", time(record.time)),
            MessageHeader("ce_subject", table.name),
            MessageHeader("content-type", "application/json"),
            MessageHeader("ce_iodebeziumop", record.operation.rawValue),
            MessageHeader("ce_iodebeziumconnector", EnvelopeEncoder.connector),
            MessageHeader("ce_iodebeziumname", prefix),
            MessageHeader("ce_iodebeziumtsms", String(record.time)),
            MessageHeader("ce_iodebeziumtable", table.name),
        ]
        if let (transaction, order) = transaction {
            headers += [
                MessageHeader("ce_iodebeziumtxid", transaction.id),
                MessageHeader("ce_iodebeziumtxtotalorder", String(order.total)),
                MessageHeader("ce_iodebeziumtxdatacollectionorder", String(order.inTable)),
            ]
        }
        return headers
    }

    /// A date with a fraction is a double, and its format cuts off what that lacks: a millisecond, half of the time.
    private static func time(_ milliseconds: Int64) -> String {
        let fraction = (milliseconds % 1000 + 1000) % 1000
        let seconds = Date(timeIntervalSince1970: Double((milliseconds - fraction) / 1000)).ISO8601Format()
        return "\(seconds.dropLast()).\(String(1000 + fraction).dropFirst())Z"
    }
}
