import Foundation
import GRDB

// Decoders are internal to the package. Debug builds make them accessible to the package of the fuzzer.
@testable import MartletBootstrap
@testable import MartletBus
@testable import MartletEngine
@testable import MartletStore
@testable import MartletWire

/// Real snapshots and checks, and random choices, as the initial inputs of the corpora.
enum Seeds {
    /// - Parameter folder: the corpus, with a folder for each target.
    static func write(to folder: String) throws {
        let fuzzed = try FuzzedStore(lifetime: .max)
        defer { withExtendedLifetime(fuzzed) {} }
        for index in 0..<120 { try save(choices(UInt64(index)), folder, "hostile", index) }
        let engine = try fuzzed.use()
        let store = try Store(path: engine.path)
        for (index, sql) in [
            "INSERT INTO setting VALUES ('k', 1)",
            "INSERT INTO trip(name, budget) VALUES ('a', 1.5), ('b', NULL); "
                + "INSERT INTO stop(trip, place) VALUES (1, 'x')",
            "DELETE FROM setting; UPDATE trip SET budget = 3 WHERE name = 'b'",
        ].enumerated() {
            try store.write { try $0.execute(sql: sql) }
            let parts = try snapshot(engine)
            let collected = try collected(parts)
            for (number, parts) in [(index, parts), (index + 10, collected)] {
                let input = parts.flatMap { [UInt8($0.count >> 8), UInt8($0.count & 255)] + $0 }
                try save(input, folder, "snapshot", number)
                try save(try check(parts), folder, "check", number)
            }
        }
    }

    /// Random choices for the hostile target, the same for a seed each time.
    private static func choices(_ seed: UInt64) -> [UInt8] {
        var state = seed
        return (0..<(100 + Int(seed) * 10)).map { _ in
            // SplitMix64.
            state &+= 0x9e37_79b9_7f4a_7c15
            var value = state
            value = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
            value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
            return UInt8(truncatingIfNeeded: value ^ value >> 31)
        }
    }

    /// The same snapshot, of a node that has garbage-collected all its tombstones.
    private static func collected(_ parts: [[UInt8]]) throws -> [[UInt8]] {
        try parts.map { part in
            switch try SnapshotFormat.decode(part) {
            case .header(var header):
                header.collected = header.hlc
                return try SnapshotFormat.encode(.header(header))
            case .contents(var contents):
                for place in contents.tombstones.indices { contents.tombstones[place].lasting = true }
                return try SnapshotFormat.encode(.contents(contents))
            case .trailer: return part
            }
        }
    }

    private static func snapshot(_ engine: SyncEngine) throws -> [[UInt8]] {
        let bus = InMemoryBus(topic: SnapshotTopic.name(of: "t"))
        _ = try SnapshotTopic(engine: engine, bus: bus, topic: "t").make()
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        try consumer.assign([PartitionPosition(partition: 0, offset: 0)])
        return try consumer.poll(maxCount: 100, timeout: .zero).messages.map(\.payload)
    }

    /// A check message with all rows of a snapshot.
    private static func check(_ parts: [[UInt8]]) throws -> [UInt8] {
        var wire = WireCheckMessage()
        wire.format = AntiEntropyFormat.version
        wire.step = 1
        for part in parts {
            switch try SnapshotFormat.decode(part) {
            case .header(let header): wire.header = header
            case .contents(let contents): wire.contents = contents
            case .trailer: break
            }
        }
        wire.covered = wire.header.entities.map { entity in
            var covered = WireCheckEntity()
            covered.name = entity.name
            covered.ranges = [WireCheckRange()]
            return covered
        }
        wire.digests = wire.covered
        wire.ignored = wire.header.collected
        return try AntiEntropyFormat.encode(wire)
    }

    private static func save(_ input: [UInt8], _ folder: String, _ target: String, _ index: Int) throws {
        let folder = URL(fileURLWithPath: folder).appendingPathComponent(target)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data(input).write(to: folder.appendingPathComponent("seed\(index)"))
    }
}
