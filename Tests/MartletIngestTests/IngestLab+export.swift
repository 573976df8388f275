import Foundation
import MartletBus
import MartletExport
import MartletSync
import MartletTestSupport

/// Export of what the nodes have, with the prefix `x`.
extension IngestLab {
    func exporter(_ node: TestNode, batch: Int = 1000, ingested: Bool = false) throws -> Exporter {
        var configuration = ExportConfiguration()
        configuration.prefix = "x"
        configuration.ingested = ingested
        configuration.batchChanges = batch
        return try Exporter(
            engine: node.engine, topics: ExportedTopics(first: bus), configuration: configuration, version: "1")
    }

    /// Exports everything that a node has, what was ingested included, by a run that then ends.
    @discardableResult
    func export(_ node: TestNode) throws -> Int { try exporter(node, ingested: true).runUntilCaughtUp() }

    /// A record of a row that was exported.
    struct ExportedRecord {
        var operation: String
        var key: [String: Any]
        /// The row after the change.
        var row: [String: Any]?
        var hlc: Int64?
        var author: String?
    }

    /// The records of a table's topic, without those that have no value.
    ///
    /// - Parameter offset: the first one; becomes the one after the last.
    func exported(_ table: String = "product", from offset: inout Int64, limit: Int = .max >> 1) throws
        -> [ExportedRecord]
    {
        guard bus.topicNames.contains("x.\(table)") else { return [] }
        let consumer = try InMemoryBus(topic: "x.\(table)", beside: bus).makeConsumer()
        defer { consumer.close() }
        try consumer.assign([PartitionPosition(partition: 0, offset: offset)])
        return try consumer.poll(maxCount: limit, timeout: .milliseconds(1)).messages.compactMap { message in
            offset = message.position.offset + 1
            func object(_ bytes: [UInt8]) throws -> [String: Any]? {
                try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any]
            }
            guard !message.isNull, let value = try object(message.payload), let key = try object(message.key),
                let source = value["source"] as? [String: Any], let operation = value["op"] as? String
            else { return nil }
            return ExportedRecord(
                operation: operation, key: key, row: value["after"] as? [String: Any], hlc: source["hlc"] as? Int64,
                author: source["author"] as? String)
        }
    }

    func exported(_ table: String = "product") throws -> [ExportedRecord] {
        var offset: Int64 = 0
        return try exported(table, from: &offset)
    }
}

private struct ExportedTopics: ExportTopics {
    let first: InMemoryBus

    /// With one partition, whatever is asked for, so that the records of a topic have one order.
    func ensure(_ topic: ExportTopic) throws { _ = InMemoryBus(topic: topic.name, beside: first) }

    func bus(of topic: String) throws -> any Bus { InMemoryBus(topic: topic, beside: first) }
}
