package import MartletSync

/// Replaces the n-th message with another one, or drops it by returning nil.
package typealias Tamper = @Sendable (OutgoingMessage, Int) -> OutgoingMessage?

/// The topic on the broker. Safe because a simulation runs on one thread.
package final class SimulatedTopic: @unchecked Sendable {
    package struct Partition {
        package var low: Int64 = 0
        /// The offset of the next message.
        package var high: Int64 = 0
        /// In the order of their offsets, which may have gaps: control records take some.
        package var messages: [IncomingMessage] = []

        /// The index of the first message at this offset or after it.
        func index(of offset: Int64) -> Int {
            var index = min(max(0, Int(offset - low)), messages.count)
            while index > 0, messages[index - 1].position.offset >= offset { index -= 1 }
            return index
        }
    }

    let name: String
    package private(set) var partitions: [Partition]
    /// Changes with every event that breaks connections: another topic, another leader.
    private(set) var epoch = 0
    let published = PublishedLog()
    /// How nodes protect their messages.
    let security: MessageSecurity
    private let time: TrueTime
    /// Changes or drops the n-th message, for tests that plant a fault.
    private let tamper: Tamper?
    private var appended = 0
    /// Decides after which messages a control record follows. Nil if none does.
    package var controlRecords: SplitMix?

    package init(
        _ name: String = "simulated", partitionCount: Int, time: TrueTime, security: MessageSecurity = .init(),
        tamper: Tamper?
    ) {
        self.security = security
        self.name = name
        self.tamper = tamper
        partitions = Array(repeating: Partition(), count: partitionCount)
        self.time = time
    }

    @discardableResult
    package func append(_ message: OutgoingMessage) -> PartitionPosition {
        let index = Int(FNV1a(message.key).value % UInt64(partitions.count))
        let position = PartitionPosition(partition: Int32(index), offset: partitions[index].high)
        appended += 1
        guard let message = tamper.map({ $0(message, appended) }) ?? message else { return position }
        var incoming = IncomingMessage(
            position: position, key: message.key, headers: message.headers, payload: message.payload,
            timestamp: time.milliseconds, isBrokerTimestamp: true)
        incoming.isNull = message.isNull
        partitions[index].messages.append(incoming)
        partitions[index].high += 1
        if controlRecords?.once(in: 2) ?? false { partitions[index].high += 1 }
        return position
    }

    /// Drops the oldest messages of a partition.
    package func prune(_ partition: Int, _ count: Int) {
        partitions[partition].messages.removeFirst(count)
        partitions[partition].low = partitions[partition].messages.first?.position.offset ?? partitions[partition].high
    }

    /// Drops the newest messages of a partition, like a newly elected broker that doesn't have them.
    package func forget(_ partition: Int, _ count: Int) {
        let left = partitions[partition].messages.dropLast(count)
        partitions[partition].high = partitions[partition].messages[left.count].position.offset
        partitions[partition].messages = Array(left)
        epoch += 1
    }

    func wipe(partitionCount: Int) {
        partitions = Array(repeating: Partition(), count: partitionCount)
        epoch += 1
    }

    func addPartition() { partitions.append(Partition()) }
}
