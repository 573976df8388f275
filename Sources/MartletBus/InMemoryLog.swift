import Foundation
import MartletCore

/// The log behind an ``InMemoryBus``.
///
/// Safe because every access to `partitions` holds the monitor's lock; a `Mutex` can't be waited on.
final class InMemoryLog: @unchecked Sendable {
    fileprivate struct Partition {
        var low: Int64 = 0
        var messages: [IncomingMessage] = []
        var high: Int64 { low + Int64(messages.count) }
    }

    private let monitor = Monitor()
    private var partitions: [Partition]

    init(partitionCount: Int) {
        partitions = Array(repeating: Partition(), count: partitionCount)
    }

    var partitionCount: Int { monitor.withLock { partitions.count } }

    func append(_ message: OutgoingMessage) -> PartitionPosition {
        monitor.withLock {
            let index = Self.partition(of: message.key, count: partitions.count)
            let position = PartitionPosition(partition: Int32(index), offset: partitions[index].high)
            var incoming = IncomingMessage(
                position: position, key: message.key, headers: message.headers, payload: message.payload,
                timestamp: Int64(Date().timeIntervalSince1970 * 1_000), isBrokerTimestamp: true)
            incoming.isNull = message.isNull
            partitions[index].messages.append(incoming)
            monitor.broadcast()
            return position
        }
    }

    func watermarks(_ partition: Int32) -> Watermarks? {
        monitor.withLock {
            guard partitions.indices.contains(Int(partition)) else { return nil }
            return Watermarks(low: partitions[Int(partition)].low, high: partitions[Int(partition)].high)
        }
    }

    /// Waits until `body`, which reads the log through its argument, returns a value.
    ///
    /// - Returns: the value; nil if the timeout passed first.
    func wait<Result>(_ timeout: Duration, until body: (Reader) -> Result?) -> Result? {
        let deadline = ContinuousClock.now + timeout
        return monitor.withLock {
            while true {
                if let result = body(Reader(partitions: partitions)) { return result }
                guard monitor.wait(until: deadline) else { return nil }
            }
        }
    }

    /// Wakes all waiting threads, so that they look again.
    func wake() {
        monitor.withLock { monitor.broadcast() }
    }

    func truncate(partition: Int32, upTo offset: Int64) {
        monitor.withLock {
            guard partitions.indices.contains(Int(partition)) else { return }
            let count = min(offset, partitions[Int(partition)].high) - partitions[Int(partition)].low
            guard count > 0 else { return }
            partitions[Int(partition)].messages.removeFirst(Int(count))
            partitions[Int(partition)].low += count
            monitor.broadcast()
        }
    }

    func wipe(partitionCount: Int?) {
        monitor.withLock {
            partitions = Array(repeating: Partition(), count: partitionCount ?? partitions.count)
            monitor.broadcast()
        }
    }

    func addPartitions(_ count: Int) {
        monitor.withLock { partitions += Array(repeating: Partition(), count: count) }
    }

    /// A view of the log, valid while its lock is held.
    struct Reader {
        fileprivate let partitions: [Partition]

        /// Returns the messages from an offset on, at most `maxCount`. Returns nil if the offset does not exist.
        func messages(from position: PartitionPosition, maxCount: Int) -> ArraySlice<IncomingMessage>? {
            guard partitions.indices.contains(Int(position.partition)) else { return nil }
            let partition = partitions[Int(position.partition)]
            guard (partition.low...partition.high).contains(position.offset) else { return nil }
            let start = Int(position.offset - partition.low)
            return partition.messages[start...].prefix(maxCount)
        }
    }

    private static func partition(of key: [UInt8], count: Int) -> Int { Int(FNV1a(key).value % UInt64(count)) }
}
