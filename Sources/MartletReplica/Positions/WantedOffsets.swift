package import GRDB
import MartletStore

/// The offsets up to which this node skipped messages, by partition, because the topic had dropped them. Only a
/// snapshot that covers the partition up to its offset makes up for them.
package struct WantedOffsets: Equatable {
    package var offsets: [Int32: Int64]

    package var isEmpty: Bool { offsets.isEmpty }

    package init(_ offsets: [Int32: Int64] = [:]) { self.offsets = offsets }

    package mutating func add(_ other: [Int32: Int64]) { offsets.merge(other) { max($0, $1) } }

    /// A recreated log may end before the offsets that were skipped in the previous one.
    package mutating func cap(_ ends: [Int32: Int64]) {
        for (partition, offset) in offsets { offsets[partition] = min(offset, ends[partition] ?? 0) }
    }

    package mutating func settle(_ covered: [Int32: Int64]) {
        offsets = offsets.filter { $0.value > covered[$0.key] ?? -1 }
    }

    package func isSettled(by covered: [Int32: Int64]) -> Bool {
        offsets.allSatisfy { $0.value <= covered[$0.key] ?? -1 }
    }

    // MARK: In the store, as `0:5,2:7`

    package static func load(_ db: Database) throws -> WantedOffsets {
        let text = try Meta.text(db, SyncMeta.snapshotWanted) ?? ""
        var wanted = WantedOffsets()
        for entry in text.split(separator: ",") {
            let numbers = entry.split(separator: ":")
            guard numbers.count == 2, let partition = Int32(numbers[0]), let offset = Int64(numbers[1]) else {
                continue
            }
            wanted.offsets[partition] = offset
        }
        return wanted
    }

    package func save(_ db: Database) throws {
        let text = offsets.sorted { $0.key < $1.key }.map { "\($0.key):\($0.value)" }.joined(separator: ",")
        try Meta.set(db, SyncMeta.snapshotWanted, isEmpty ? nil : text)
        if isEmpty { try Meta.set(db, SyncMeta.snapshotWantedSince, nil as String?) }
    }

    /// Returns since when this node has wanted a snapshot, in milliseconds since 1970. Nil if it wants none; zero if an
    /// earlier version noted the offsets.
    package static func since(_ db: Database) throws -> Int64? {
        try load(db).isEmpty ? nil : Meta.integer(db, SyncMeta.snapshotWantedSince) ?? 0
    }
}

extension WantedOffsets {
    package static func load(_ connection: WriterConnection) throws -> WantedOffsets {
        try connection.read { try load($0) }
    }

    /// Records that messages were skipped up to these offsets.
    package static func add(_ offsets: [Int32: Int64], _ connection: WriterConnection) throws {
        try change(connection) { $0.add(offsets) }
    }

    /// Lowers the offsets to these ends: no snapshot of the topic can cover more.
    package static func cap(_ ends: [Int32: Int64], _ connection: WriterConnection) throws {
        try change(connection) { $0.cap(ends) }
    }

    private static func change(_ connection: WriterConnection, _ change: (inout WantedOffsets) -> Void) throws {
        try connection.writeMeta { db in
            let before = try load(db)
            var wanted = before
            change(&wanted)
            guard wanted != before else { return }
            try wanted.save(db)
            if before.isEmpty { try Meta.set(db, SyncMeta.snapshotWantedSince, connection.now()) }
        }
    }
}
