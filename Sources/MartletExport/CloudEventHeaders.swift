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

    private static func time(_ milliseconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(milliseconds) / 1000)
            .ISO8601Format(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }
}
