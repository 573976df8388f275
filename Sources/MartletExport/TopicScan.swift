import MartletBus
import MartletCore

/// Reads all of a topic, up to the end that it has at the beginning.
struct TopicScan {
    private static let patience = Duration.seconds(30)

    let bus: any Bus
    /// Called between reads; throws to end the scan.
    let mayContinue: () throws -> Void

    /// Sixteen bytes that stand for a key: a table may have millions of them.
    struct KeyDigest: Hashable {
        private let high: UInt64
        private let low: UInt64

        init(_ key: [UInt8]) {
            let digest = key.withUnsafeBytes { ContentDigest.sha256($0) }
            (high, low) = digest.withUnsafeBytes {
                ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            }
        }
    }

    /// Returns what each partition holds.
    func ends() throws -> [Watermarks] {
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        let count = try consumer.partitionCount(timeout: .seconds(5))
        return try (0..<Int32(count)).map { try consumer.watermarks(partition: $0, timeout: .seconds(5)) }
    }

    /// Passes the messages of each partition in order.
    func forEachMessage(_ ends: [Watermarks], _ body: (IncomingMessage) throws -> Void) throws {
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        var left = Set(ends.indices.filter { ends[$0].high > ends[$0].low }.map { Int32($0) })
        try consumer.assign(left.sorted().map { PartitionPosition(partition: $0, offset: ends[Int($0)].low) })
        var deadline = ContinuousClock.now + Self.patience
        while !left.isEmpty {
            try mayContinue()
            let batch = try consumer.poll(maxCount: 1000, timeout: .milliseconds(500))
            for message in batch.messages {
                let end = ends[Int(message.position.partition)].high
                if message.position.offset < end { try body(message) }
                if message.position.offset + 1 >= end { left.remove(message.position.partition) }
            }
            for event in batch.events {
                switch event {
                case .endOfPartition(let position): left.remove(position.partition)
                case .error(let error): throw error
                case .disconnected(let reason): throw BusError(.unreachable, reason, isRetriable: true)
                case .offsetOutOfRange:
                    throw BusError(.other, "the topic \(bus.topic) changed while it was read", isRetriable: true)
                }
            }
            if !batch.messages.isEmpty { deadline = .now + Self.patience }
            guard ContinuousClock.now < deadline else {
                throw BusError(.timedOut, "could not read the topic \(bus.topic) to its end", isRetriable: true)
            }
        }
    }
}
