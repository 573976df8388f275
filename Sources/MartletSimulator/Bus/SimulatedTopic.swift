package import MartletSync

/// Replaces the n-th message with another one, or drops it by returning nil.
package typealias Tamper = @Sendable (OutgoingMessage, Int) -> OutgoingMessage?

/// The topic on the broker. Safe because a simulation runs on one thread.
final class SimulatedTopic: @unchecked Sendable {
    struct Partition {
        var low: Int64 = 0
        var messages: [IncomingMessage] = []
        var high: Int64 { low + Int64(messages.count) }
    }

    let name: String
    private(set) var partitions: [Partition]
    /// Changes with every event that breaks connections: another topic, another leader.
    private(set) var epoch = 0
    let published = PublishedLog()
    /// How nodes protect their messages.
    let security: MessageSecurity
    private let time: TrueTime
    /// Changes or drops the n-th message, for tests that plant a fault.
    private let tamper: Tamper?
    private var appended = 0

    init(
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
    func append(_ message: OutgoingMessage) -> PartitionPosition {
        let index = Int(FNV1a(message.key).value % UInt64(partitions.count))
        let position = PartitionPosition(partition: Int32(index), offset: partitions[index].high)
        appended += 1
        guard let message = tamper.map({ $0(message, appended) }) ?? message else { return position }
        partitions[index].messages.append(
            IncomingMessage(
                position: position, key: message.key, headers: message.headers, payload: message.payload,
                timestamp: time.milliseconds, isBrokerTimestamp: true))
        return position
    }

    /// Drops the oldest messages of a partition.
    func prune(_ partition: Int, _ count: Int) {
        partitions[partition].messages.removeFirst(count)
        partitions[partition].low += Int64(count)
    }

    /// Drops the newest messages of a partition, like a newly elected broker that doesn't have them.
    func forget(_ partition: Int, _ count: Int) {
        partitions[partition].messages.removeLast(count)
        epoch += 1
    }

    func wipe(partitionCount: Int) {
        partitions = Array(repeating: Partition(), count: partitionCount)
        epoch += 1
    }

    func addPartition() { partitions.append(Partition()) }
}
