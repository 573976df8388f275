import MartletBus
import MartletCore
import MartletStore
import MartletWire

/// Reads the parts of one snapshot in order, wherever their messages are.
///
/// Used by one thread at a time.
final class SnapshotReader {
    private let id: NodeID
    private let positions: [Int: PartitionPosition]
    private let consumer: any BusConsumer
    private var ahead: ArraySlice<IncomingMessage> = []
    /// The position that the consumer reads next.
    private var place: PartitionPosition?
    private let maker: NodeID
    private let topic: String
    private let messageGuard: MessageGuard
    private let node: NodeID
    private let isStopped: () -> Bool

    /// - Parameter isStopped: called between reads; true ends ``part(from:)``.
    init(
        _ bus: any Bus, _ id: NodeID, _ entry: SnapshotDirectory.Entry, _ messageGuard: MessageGuard, node: NodeID,
        isStopped: @escaping () -> Bool
    ) throws {
        self.isStopped = isStopped
        self.id = id
        self.messageGuard = messageGuard
        self.node = node
        topic = bus.topic
        maker = entry.maker
        positions = entry.positions
        consumer = try bus.makeConsumer()
    }

    deinit { consumer.close() }

    /// Reads the part that begins with this message.
    ///
    /// - Returns: its bytes, and the number of the message after it.
    /// - Throws: ``/MartletBus/BusError`` when the connection is lost, ``/MartletCore/StoreError`` with code `.corrupt`
    ///   when the snapshot has changed, `CancellationError` when it was stopped.
    func part(from number: Int) throws -> (bytes: [UInt8], next: Int) {
        let (first, envelope) = try message(number)
        guard envelope.chunkIndex == 0 else { throw SnapshotFormat.damaged("message \(number) does not begin a part") }
        var bytes = first.payload
        for index in 1..<max(1, envelope.chunkCount) {
            let (chunk, chunkEnvelope) = try message(number + index)
            guard chunkEnvelope.part == envelope.part, chunkEnvelope.chunkIndex == index else {
                throw SnapshotFormat.damaged("part \(envelope.part) is incomplete")
            }
            bytes += chunk.payload
            guard bytes.count <= messageGuard.configuration.maxTransactionBytes else {
                throw SnapshotFormat.damaged("part \(envelope.part) exceeds security.limits.maxTransactionBytes")
            }
        }
        return (bytes, number + envelope.chunkCount)
    }

    private func message(_ number: Int) throws -> (IncomingMessage, SnapshotEnvelope) {
        guard let wanted = positions[number] else { throw SnapshotFormat.damaged("message \(number) is missing") }
        if place.map({
            $0.partition != wanted.partition || $0.offset > wanted.offset || $0.offset + 500 < wanted.offset
        })
            ?? true
        {
            try consumer.assign([wanted])
            ahead = []
            place = wanted
        }
        let deadline = ContinuousClock.now + SnapshotDirectory.patience
        while true {
            if isStopped() { throw CancellationError() }
            while let message = ahead.popFirst() {
                place = PartitionPosition(partition: wanted.partition, offset: message.position.offset + 1)
                if message.position.offset < wanted.offset { continue }
                guard message.position == wanted, let envelope = SnapshotEnvelope(message), envelope.snapshot == id,
                    envelope.number == number, envelope.maker == maker
                else { throw SnapshotFormat.damaged("message \(number) is gone") }
                guard message.isIntact else {
                    throw SnapshotFormat.damaged("checksum mismatch in message \(number)")
                }
                do throws(WireError) {
                    return (try messageGuard.open(message, topic: topic, node: node), envelope)
                } catch {
                    throw SnapshotFormat.damaged("message \(number): \(error)")
                }
            }
            let batch = try consumer.poll(maxCount: 8, timeout: .milliseconds(500))
            ahead = batch.messages.filter { $0.position.partition == wanted.partition }[...]
            for event in batch.events {
                switch event {
                case .offsetOutOfRange: throw SnapshotFormat.damaged("message \(number) is gone")
                case .disconnected(let reason): throw BusError(.unreachable, reason, isRetriable: true)
                case .error(let error): throw error
                case .endOfPartition(let position):
                    if ahead.isEmpty, position.partition == wanted.partition, position.offset <= wanted.offset {
                        throw SnapshotFormat.damaged("message \(number) is gone")
                    }
                }
            }
            guard ContinuousClock.now < deadline else {
                throw BusError(.timedOut, "message \(number) of the snapshot did not arrive", isRetriable: true)
            }
        }
    }
}
