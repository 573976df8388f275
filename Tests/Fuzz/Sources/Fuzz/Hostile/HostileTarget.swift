import Foundation
import GRDB
import Logging

// Decoders are internal to the package. Debug builds make them accessible to the package of the fuzzer.
@testable import MartletAntiEntropy
@testable import MartletBootstrap
@testable import MartletBus
@testable import MartletCore
@testable import MartletEngine
@testable import MartletReplica
@testable import MartletStore
@testable import MartletWire

/// A whole node that reads topics with decodable but nonsensical messages: transactions, snapshots and checks, which
/// ``HostileMaker`` derives from the input.
///
/// After each input the node must apply a transaction of a good node, no topic may be blocked, and every message in the
/// quarantine can be discarded.
final class HostileTarget: FuzzTarget {
    /// The number of inputs that one store sees.
    private static let lifetime = 40

    private var node: HostileNode?
    private var uses = 0
    /// The folder for the inputs of the current store: the last input alone may not reproduce a failure.
    private let kept = ProcessInfo.processInfo.environment["FUZZ_KEPT"].map { URL(fileURLWithPath: $0) }

    func run(_ bytes: [UInt8]) {
        do {
            if uses == Self.lifetime {
                try node?.close()
                node = nil
            }
            if node == nil {
                node = try HostileNode()
                uses = 0
            }
            uses += 1
            try keep(bytes)
            try node?.take(bytes)
        } catch {
            fatalError("\(error)")
        }
    }

    private func keep(_ bytes: [UInt8]) throws {
        guard let kept else { return }
        if uses == 1 {
            if FileManager.default.fileExists(atPath: kept.path) { try FileManager.default.removeItem(at: kept) }
            try FileManager.default.createDirectory(at: kept, withIntermediateDirectories: true)
        }
        try Data(bytes).write(to: kept.appendingPathComponent(String(format: "%02d", uses)))
    }
}

/// The node, its topics, and the identity of a good node.
private final class HostileNode {
    private static let silence = Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() }
    /// More than a store has after so few inputs, whatever they contain.
    private static let maxStoreBytes = 64 << 20

    private let folder: URL
    private let path: String
    private var engine: SyncEngine
    private let store: Store
    private let bus = InMemoryBus(topic: "t")
    private let checks = InMemoryBus(topic: AntiEntropy.name(of: "t"))
    private let snapshotBus = InMemoryBus(topic: SnapshotTopic.name(of: "t"))
    private var consumer: Consumer
    private var antiEntropy: AntiEntropy
    private var snapshots: SnapshotTopic
    private var keeper: SnapshotKeeper
    private let origins = (0..<4).map { _ in NodeID(UUID()) }
    private let good = NodeID(UUID())
    private var sequence: UInt64 = 0
    private let shape: [UInt8]
    /// A connection for the assertions.
    private let reader: DatabaseQueue
    private var directOffset: Int64 = 0

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("martlet-fuzz-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        path = folder.appendingPathComponent("s.sqlite").path
        store = try Store.create(path: path)
        try store.write {
            try $0.execute(
                sql: """
                    CREATE TABLE trip(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE,
                      budget REAL CHECK (budget < 9));
                    CREATE TABLE stop(id INTEGER PRIMARY KEY, trip INTEGER NOT NULL REFERENCES trip(id), place TEXT);
                    CREATE TABLE setting(key TEXT PRIMARY KEY NOT NULL, value);
                    INSERT INTO setting VALUES ('k1', 1), ('k2', 2);
                    """)
        }
        _ = try store.attach()
        reader = try DatabaseQueue(path: path)
        engine = try Self.engine(path)
        (consumer, antiEntropy, snapshots, keeper) = Self.services(engine, bus, checks, snapshotBus)
        precondition(antiEntropy.step(timeout: .zero))
        shape = try Self.shapeOfSettings(engine)
    }

    /// Limits that an input can reach.
    private static func engine(_ path: String) throws -> SyncEngine {
        var configuration = SyncConfiguration()
        configuration.maxMessageBytes = 20_000
        configuration.maxInFlightBytes = 100_000
        var rules = SecurityConfiguration()
        rules.maxMessageBytes = 200_000
        rules.maxTransactionBytes = 400_000
        rules.maxRowBytes = 100_000
        rules.maxQuarantineBytes = 1 << 20
        return try SyncEngine(
            path: path, configuration: configuration, security: MessageSecurity(rules, log: silence))
    }

    private static func services(
        _ engine: SyncEngine, _ bus: InMemoryBus, _ checks: InMemoryBus, _ snapshotBus: InMemoryBus
    ) -> (Consumer, AntiEntropy, SnapshotTopic, SnapshotKeeper) {
        var configuration = SnapshotConfiguration()
        configuration.minTransactions = 1
        let snapshots = SnapshotTopic(
            engine: engine, bus: snapshotBus, topic: "t", configuration: configuration, log: silence)
        return (
            Consumer(engine: engine, bus: bus, log: silence),
            AntiEntropy(engine: engine, bus: checks, topic: "t", log: silence), snapshots,
            SnapshotKeeper(engine: engine, snapshots: snapshots, topic: "t", log: silence)
        )
    }

    func close() throws {
        consumer.disconnect()
        try engine.close()
        try reader.close()
        try store.close()
        try FileManager.default.removeItem(at: folder)
    }

    private func restart() throws {
        consumer.disconnect()
        try engine.close()
        engine = try Self.engine(path)
        (consumer, antiEntropy, snapshots, keeper) = Self.services(engine, bus, checks, snapshotBus)
        precondition(antiEntropy.step(timeout: .zero), "an earlier check holds up")
    }

    func take(_ bytes: [UInt8]) throws {
        var maker = HostileMaker(choose: ChoiceReader(bytes), origins: origins, now: engine.now())
        for _ in 0..<8 where !maker.choose.isAtEnd {
            switch maker.choose.choice(8) {
            case 0...2: try send([maker.message()], on: bus)
            case 3, 4: try sendCheck(maker.check(shape))
            case 5, 6:
                try send(try maker.snapshot(), on: snapshotBus)
                // A snapshot that can't be loaded is skipped.
                _ = try snapshots.load(partitionCount: 1)
                _ = try keeper.step()
            default: try deliver(&maker)
            }
        }
        try expectAlive()
        if maker.choose.isRare(4) { try restart() }
        try expectRoom()
    }

    private func send(_ messages: [OutgoingMessage], on bus: InMemoryBus) throws {
        let producer = try bus.makeProducer { _ in }
        for message in messages { try producer.send(message) }
        producer.close()
    }

    private func sendCheck(_ wire: WireCheckMessage) throws {
        var message = try AntiEntropyFormat.message(wire)
        // The payload as it was made, not with this program's format version.
        message.payload = try AntiEntropyFormat.encode(wire)
        message.headers.removeAll { $0.name == WireHeader.checksum }
        if wire.header.maker.count != 16 { message.headers.removeAll { $0.name == WireHeader.origin } }
        try send([message], on: checks)
        precondition(antiEntropy.step(timeout: .zero), "a check is held up")
    }

    /// Applies a message as if a topic had delivered it with an arbitrary broker timestamp.
    private func deliver(_ maker: inout HostileMaker) throws {
        let message = maker.message()
        directOffset += 1
        let incoming = IncomingMessage(
            position: PartitionPosition(partition: 3, offset: directOffset), key: message.key,
            headers: message.headers, payload: message.payload, timestamp: maker.choose.integer(),
            isBrokerTimestamp: maker.choose.isRare(2))
        _ = try engine.apply([incoming], topic: "direct")
    }

    // MARK: Assertions after each input

    private func expectAlive() throws {
        let key = UUID().uuidString
        try send([try goodTransaction(key)], on: bus)
        var isThere = false
        for _ in 0..<20 where !isThere {
            precondition(consumer.step(timeout: .zero) != nil, "reading is held up: \(consumer.currentProgress)")
            isThere = try count("SELECT count(*) FROM setting WHERE key = '\(key)'") == 1
        }
        precondition(isThere, "a transaction of a good node is not applied")
        _ = consumer.currentProgress.lags(at: .now, milliseconds: engine.now())
        precondition(antiEntropy.step(timeout: .zero), "checks are held up")
        _ = try SyncStatus.read(store)
        _ = try engine.retryQuarantined()
        for message in try store.quarantined() {
            let discarded = try store.discardQuarantined(message.id)
            precondition(discarded != nil, "a message can't be thrown away")
        }
        let left = try store.quarantined()
        precondition(left.isEmpty, "messages are left in the quarantine")
        _ = try store.parked()
    }

    private func expectRoom() throws {
        let bytes = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
        precondition(bytes <= Self.maxStoreBytes, "the store has \(bytes) bytes")
    }

    private func goodTransaction(_ key: String) throws -> OutgoingMessage {
        sequence += 1
        // Later than any watermark that a message has given this node.
        let now = max(engine.now(), (try TombstoneCollection(engine).collectedThrough() ?? 0) + 1)
        var transaction = WireTransaction()
        transaction.format = WireFormat.version
        transaction.origin = Data(good.bytes)
        transaction.originName = "good"
        transaction.sequence = sequence
        transaction.hlc = HybridTime(milliseconds: now).rawValue
        transaction.timestampMs = engine.now()
        var change = WireChange()
        change.entity = "setting"
        change.kind = .insert
        change.identity = [try WireValue(.text(key))]
        change.columns = try [("key", Value.text(key)), ("value", .integer(1))].map { name, value in
            var column = WireColumn()
            column.name = name
            column.value = try WireValue(value)
            return column
        }
        transaction.changes = [change]
        let chunker = Chunker(maxBytes: 100_000, node: good, encoding: .protobuf)
        let payload = try WireFormat.encode(transaction, as: .protobuf)
        return chunker.message(0, sequence: Int64(sequence), payload: payload, size: payload.count)
    }

    private static func shapeOfSettings(_ engine: SyncEngine) throws -> [UInt8] {
        let wire = try engine.session.readStamped {
            try AntiEntropyReader($0, engine: engine, topic: "t").beginning(.none)
        }
        return wire.digests.first { $0.name == "setting" }.map { Array($0.shape) } ?? []
    }

    private func count(_ sql: String) throws -> Int {
        try reader.read { try Int.fetchOne($0, sql: sql) ?? 0 }
    }
}
