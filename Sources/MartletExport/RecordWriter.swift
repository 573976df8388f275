package import MartletBus
package import MartletCore
package import MartletReplica

/// Makes the messages of changes and transactions, and counts them. Pure: it sends nothing.
package struct RecordWriter: Sendable {
    /// A message, and the topic that it belongs to.
    package struct Outgoing: Sendable, Equatable {
        package var topic: String
        package var message: OutgoingMessage
        /// True for the record of a row, false for what accompanies it.
        package var isRecord: Bool
    }

    private let names: TopicNames
    private let encoder: EnvelopeEncoder
    private let hasCloudEvents: Bool
    /// The transaction that has begun and not ended, and the number of records of each of its tables.
    private var open: (transaction: ExportTransaction, counts: [(table: String, count: Int64)])?

    package init(_ configuration: ExportConfiguration, _ names: TopicNames, version: String) {
        self.names = names
        encoder = EnvelopeEncoder(prefix: names.prefix, version: version, schemas: configuration.schemas)
        hasCloudEvents = configuration.cloudEvents
    }

    /// Forgets the open transaction: it is sent again from its beginning.
    package mutating func reset() { open = nil }

    /// Returns the messages of a transaction, or of the next part of it. A transaction without records has none.
    ///
    /// - Parameters:
    ///   - node: this node.
    ///   - now: milliseconds since 1970.
    package mutating func messages(
        _ transaction: RowTransaction, node: NodeID, now: Int64, tables: (RowChange) throws -> ExportTable?
    ) throws -> [Outgoing] {
        var messages: [Outgoing] = []
        for change in transaction.changes {
            guard let table = try tables(change) else { continue }
            if open == nil {
                let begun = Self.transaction(transaction, node: node)
                open = (begun, [])
                messages.append(marker(begun.id, counts: nil, now: now))
            }
            messages += record(ExportRecord(change), of: table, now: now)
        }
        if transaction.isComplete, let (ended, counts) = open {
            messages.append(marker(ended.id, counts: counts, now: now))
            open = nil
        }
        return messages
    }

    /// Returns the message for a row that was read.
    package func read(_ change: RowChange, of table: ExportTable, now: Int64) -> Outgoing {
        var record = ExportRecord(change)
        record.operation = .read
        if record.time == 0 { record.time = now }
        return outgoing(record, "read", table, key: encoder.key(change.identity, of: table), now)
    }

    /// Returns the messages for the delete of a row that belongs to no transaction of the history.
    package func deletion(_ change: RowChange, of table: ExportTable, now: Int64) -> [Outgoing] {
        let key = encoder.key(change.identity, of: table)
        return [outgoing(ExportRecord(change), "deleted", table, key: key, now), Self.null(key, table)]
    }

    /// Returns the messages that remove a row of which only the key is known, as it is on the topic.
    package func removal(key: [UInt8], of table: ExportTable, now: Int64) -> [Outgoing] {
        var headers: [MessageHeader] = []
        if hasCloudEvents {
            headers = CloudEventHeaders.headers(
                id: "removed:\(table.name):\(now):\(Self.digest(key))", record: EnvelopeEncoder.removed(at: now),
                table: table,
                prefix: names.prefix, nil)
        }
        return [
            Outgoing(
                topic: table.topic,
                message: OutgoingMessage(
                    key: key, headers: headers, payload: encoder.removal(key: key, of: table, now: now), tag: 0),
                isRecord: true),
            Self.null(key, table),
        ]
    }

    package func key(_ identity: StableID, of table: ExportTable) -> [UInt8] { encoder.key(identity, of: table) }

    private mutating func record(_ record: ExportRecord, of table: ExportTable, now: Int64) -> [Outgoing] {
        guard let begun = open else { return [] }
        let transaction = begun.transaction
        var counts = begun.counts
        let place = counts.firstIndex { $0.table == table.name } ?? counts.count
        if place == counts.count { counts.append((table.name, 0)) }
        counts[place].count += 1
        let order = ExportOrder(total: counts.reduce(0) { $0 + $1.count }, inTable: counts[place].count)
        open = (transaction, counts)
        let key = encoder.key(record.identity, of: table)
        let id = "\(transaction.id):\(order.total)"
        var messages = [outgoing(record, table, key: key, id: id, (transaction, order), now)]
        if record.operation == .delete { messages.append(Self.null(key, table)) }
        return messages
    }

    /// The record after a delete, by which the broker forgets the row.
    private static func null(_ key: [UInt8], _ table: ExportTable) -> Outgoing {
        Outgoing(topic: table.topic, message: OutgoingMessage(nullFor: key, headers: [], tag: 0), isRecord: false)
    }

    private static func digest(_ key: [UInt8]) -> String {
        Hex.text(key.withUnsafeBytes { ContentDigest.sha256($0) })
    }

    /// Returns the message for a record that belongs to no transaction.
    ///
    /// - Parameter kind: what made it. Begins its ID.
    private func outgoing(
        _ record: ExportRecord, _ kind: String, _ table: ExportTable, key: [UInt8], _ now: Int64
    ) -> Outgoing {
        let id = "\(kind):\(table.name):\(record.stamp?.time.rawValue ?? 0):\(Self.digest(key))"
        return outgoing(record, table, key: key, id: id, nil, now)
    }

    private func outgoing(
        _ record: ExportRecord, _ table: ExportTable, key: [UInt8], id: String,
        _ transaction: (ExportTransaction, ExportOrder)?, _ now: Int64
    ) -> Outgoing {
        var headers: [MessageHeader] = []
        if hasCloudEvents {
            headers = CloudEventHeaders.headers(
                id: id, record: record, table: table, prefix: names.prefix, transaction)
        }
        headers += TypeHeaders.headers(record, of: table)
        return Outgoing(
            topic: table.topic,
            message: OutgoingMessage(
                key: key, headers: headers, payload: encoder.value(record, of: table, transaction, now: now), tag: 0),
            isRecord: true)
    }

    private func marker(_ id: String, counts: [(table: String, count: Int64)]?, now: Int64) -> Outgoing {
        Outgoing(
            topic: names.transactions,
            message: OutgoingMessage(
                key: encoder.transactionKey(id), headers: [],
                payload: encoder.transactionValue(id, counts: counts, now: now), tag: 0),
            isRecord: false)
    }

    private static func transaction(_ transaction: RowTransaction, node: NodeID) -> ExportTransaction {
        let origin = transaction.origin
        let id =
            origin.map { "\($0.node.description.lowercased()):\($0.sequence)" }
            ?? "\(node.description.lowercased())/\(transaction.mark)"
        return ExportTransaction(
            id: id, time: transaction.time, author: transaction.author, origin: origin?.node,
            originName: origin?.name, sequence: origin?.sequence)
    }
}

extension ExportRecord {
    init(_ change: RowChange) {
        let operation: Operation =
            switch change.kind {
            case .insert: .create
            case .update: .update
            case .delete: .delete
            }
        self.init(
            identity: change.identity, operation: operation,
            before: change.before.map { Row(number: $0.number, values: $0.values) },
            after: change.after.map { Row(number: $0.number, values: $0.values) }, stamp: change.stamp,
            time: change.time)
    }
}
