import Foundation
import MartletBus
import MartletCore
import MartletReplica
import MartletStore
import MartletWire

/// The snapshots on the topic, and the positions of their messages. Reads only what is new since the last time.
///
/// Keeps positions and each snapshot's header; nothing else of what it reads. Used by one thread at a time.
final class SnapshotDirectory {
    struct Entry {
        var maker: NodeID
        /// The position of each message, by its number.
        var positions: [Int: PartitionPosition] = [:]
        var count: Int?
        var damaged: Set<Int> = []
        var headerChunks: [Int: [UInt8]] = [:]
        var headerCount: Int?
        var headerBytes = 0
        /// True if its header was dropped, because it was too large together with all others.
        var hasLostHeader = false
        var bytes = 0
        var arrived: Int64 = 0

        var header: Result<WireSnapshotHeader, StoreError>? {
            guard let headerCount, headerChunks.count == headerCount else { return nil }
            let bytes = (0..<headerCount).flatMap { headerChunks[$0] ?? [] }
            do throws(StoreError) {
                guard case .header(let header) = try SnapshotFormat.decode(bytes) else {
                    throw SnapshotFormat.damaged("it does not begin with its header")
                }
                return .success(header)
            } catch {
                return .failure(error)
            }
        }

        var state: SnapshotInfo.State {
            if case .failure(let error)? = header {
                return error.code == .newerVersion ? .newerFormat(error.message) : .damaged(error.message)
            }
            if hasLostHeader {
                return .damaged("its header exceeds security.limits.maxTransactionBytes")
            }
            if let damaged = damaged.min() { return .damaged("checksum mismatch in message \(damaged)") }
            guard let count else { return .unfinished }
            if let missing = (0..<count).first(where: { positions[$0] == nil }) {
                return .damaged("message \(missing) of \(count) is missing")
            }
            return header == nil ? .damaged("its header is missing") : .complete
        }
    }

    /// A snapshot with messages that are not proven to come from their stated sender. It replaces nothing.
    private struct Refused {
        var maker: NodeID
        var reason: String
        var messages = 0
        var bytes = 0
        var arrived: Int64 = 0
    }

    /// How long the broker may take to send the next message.
    static let patience = Duration.seconds(30)

    private let bus: any Bus
    private let messageGuard: MessageGuard
    /// This node's ID. A fork changes it.
    private let node: @Sendable () -> NodeID
    private var refused: [NodeID: Refused] = [:]
    /// The generation of the key ring when messages were refused for a missing key.
    private var lackedKeys: Int?
    private(set) var entries: [NodeID: Entry] = [:]
    /// The IDs in the order in which they were first seen.
    private var order: [NodeID] = []
    private var messageCount = 0
    private var headerBytes = 0
    private var reading = SnapshotTopicReading()
    private let isStopped: @Sendable () -> Bool

    /// - Parameter isStopped: called between reads; true ends ``update()``.
    init(
        _ bus: any Bus, _ messageGuard: MessageGuard, node: @escaping @Sendable () -> NodeID,
        isStopped: @escaping @Sendable () -> Bool = { false }
    ) {
        self.bus = bus
        self.messageGuard = messageGuard
        self.node = node
        self.isStopped = isStopped
    }

    private var unsorted: [SnapshotInfo] {
        entries.map { id, entry in
            let header = try? entry.header?.get()
            return SnapshotInfo(
                id: id.uuid, maker: entry.maker, makerName: header?.makerName ?? "",
                made: Date(milliseconds: header?.madeMs ?? entry.arrived), arrived: Date(milliseconds: entry.arrived),
                state: entry.state, messageCount: entry.count ?? entry.positions.count, byteCount: entry.bytes,
                topic: header?.topic ?? "", partitionCount: Int(header?.partitionCount ?? 0),
                positions: Dictionary(
                    header?.positions.map { ($0.partition, $0.next) } ?? [], uniquingKeysWith: { a, _ in a }))
        }
            + refused.filter { entries[$0.key] == nil }.map { id, refused in
                SnapshotInfo(
                    id: id.uuid, maker: refused.maker, makerName: "", made: Date(milliseconds: refused.arrived),
                    arrived: Date(milliseconds: refused.arrived), state: .damaged(refused.reason),
                    messageCount: refused.messages, byteCount: refused.bytes, positions: [:])
            }
    }

    /// All snapshots, newest first.
    var snapshots: [SnapshotInfo] {
        unsorted.sorted { ($0.arrived, $0.id.uuidString) > ($1.arrived, $1.id.uuidString) }
    }

    /// Reads what is new since the last time. A topic that doesn't exist has no snapshots.
    ///
    /// - Throws: ``/MartletBus/BusError`` when the broker can't be asked, or stops answering, `CancellationError` when
    ///   it was stopped. The next call continues where this one ended.
    func update() throws {
        // Messages that a new key opens must be read again.
        if let lackedKeys, messageGuard.refresh() > lackedKeys { forget() }
        if try !readNews() {
            forget()
            _ = try readNews()
        }
    }

    /// - Returns: false if a partition no longer has the last message that was read of it. Compaction has removed it,
    ///   or this is another topic of the same name.
    private func readNews() throws -> Bool {
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        let count: Int
        do throws(BusError) {
            count = try consumer.partitionCount(timeout: .seconds(5))
        } catch {
            guard error.code == .unknownTopic else { throw error }
            forget()
            return true
        }
        let marks = try (0..<Int32(count)).map { try consumer.watermarks(partition: $0, timeout: .seconds(5)) }
        switch reading.begin(marks) {
        case .replaced: return false
        case .upToDate: return true
        case .read(let starts): try consumer.assign(starts)
        }
        var deadline = ContinuousClock.now + Self.patience
        while !reading.isAtEnd {
            if isStopped() { throw CancellationError() }
            let batch = try consumer.poll(maxCount: 16, timeout: .milliseconds(500))
            for message in batch.messages {
                guard try follow(reading.handle(message), message) else { return false }
            }
            for event in batch.events {
                guard try follow(reading.handle(event)) else { return false }
            }
            if !batch.messages.isEmpty { deadline = .now + Self.patience }
            guard ContinuousClock.now < deadline else {
                throw BusError(.timedOut, "could not read the snapshot topic to its end: timed out", isRetriable: true)
            }
        }
        return true
    }

    /// - Returns: false if everything has to be read again.
    private func follow(_ action: SnapshotTopicReading.Action, _ message: IncomingMessage? = nil) throws -> Bool {
        switch action {
        case .take: if let message { note(message) }
        case .proceed: break
        case .replaced: return false
        case .forget(let error):
            forget()
            throw error
        case .fail(let error): throw error
        }
        return true
    }

    func forget() {
        entries = [:]
        order = []
        (messageCount, headerBytes) = (0, 0)
        refused = [:]
        lackedKeys = nil
        reading = SnapshotTopicReading()
    }

    private func note(_ incoming: IncomingMessage) {
        guard let envelope = SnapshotEnvelope(incoming) else { return }
        let message: IncomingMessage
        do throws(WireError) {
            message = try messageGuard.open(incoming, topic: bus.topic, node: node())
        } catch {
            return refuse(incoming, envelope, error)
        }
        if entries[envelope.snapshot] == nil { order.append(envelope.snapshot) }
        // Removed from the dictionary first, so that changing it doesn't copy it.
        var entry = entries.removeValue(forKey: envelope.snapshot) ?? Entry(maker: envelope.maker)
        defer {
            entries[envelope.snapshot] = entry
            makeRoom()
        }
        guard entry.maker == envelope.maker else { return }
        if entry.positions.updateValue(message.position, forKey: envelope.number) == nil { messageCount += 1 }
        entry.bytes += message.payload.count
        entry.arrived = max(entry.arrived, message.timestamp)
        if let count = envelope.count { entry.count = count }
        if message.isIntact { entry.damaged.remove(envelope.number) } else { entry.damaged.insert(envelope.number) }
        guard envelope.part == 0, message.isIntact else { return }
        let before = entry.headerBytes
        entry.headerBytes += message.payload.count - (entry.headerChunks[envelope.chunkIndex]?.count ?? 0)
        entry.headerChunks[envelope.chunkIndex] = message.payload
        entry.headerCount = envelope.chunkCount
        headerBytes += entry.headerBytes - before
    }

    /// More than a topic that keeps the newest two snapshots of each node ever has.
    static let maxEntries = 10_000
    /// The limit for all snapshots together. Each message takes 100 bytes of memory.
    static let maxKnownMessages = 1_000_000

    /// Drops the largest header, or the snapshot that was first seen, when there are too many: anybody may fill the
    /// topic with any number of bogus snapshots.
    private func makeRoom() {
        let limits = messageGuard.configuration
        let limit = max(limits.maxMessageBytes, limits.maxTransactionBytes / 4)
        while headerBytes > limit, entries.count > 0,
            let largest = entries.max(by: { $0.value.headerBytes < $1.value.headerBytes })
        {
            headerBytes -= largest.value.headerBytes
            entries[largest.key]?.headerChunks = [:]
            entries[largest.key]?.headerCount = nil
            entries[largest.key]?.headerBytes = 0
            entries[largest.key]?.hasLostHeader = true
        }
        while entries.count > Self.maxEntries || messageCount > Self.maxKnownMessages, entries.count > 1 {
            guard let gone = entries.removeValue(forKey: order.removeFirst()) else { continue }
            messageCount -= gone.positions.count
            headerBytes -= gone.headerBytes
        }
    }

    private func refuse(_ message: IncomingMessage, _ envelope: SnapshotEnvelope, _ error: WireError) {
        if let missing = error.missingKey { lackedKeys = min(lackedKeys ?? .max, missing.generation) }
        // Limited, because anybody can invent any number of snapshots.
        guard refused.count < 100 || refused[envelope.snapshot] != nil else { return }
        var known = refused[envelope.snapshot] ?? Refused(maker: envelope.maker, reason: error.description)
        known.messages += 1
        known.bytes += message.payload.count
        known.arrived = max(known.arrived, message.timestamp)
        refused[envelope.snapshot] = known
    }
}
