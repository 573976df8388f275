import GRDB
import MartletStore

/// The offsets up to which this node skipped messages, by partition, because the topic had dropped them. Only a
/// snapshot that covers the partition up to its offset makes up for them.
struct WantedOffsets: Equatable {
    var offsets: [Int32: Int64]

    var isEmpty: Bool { offsets.isEmpty }

    init(_ offsets: [Int32: Int64] = [:]) { self.offsets = offsets }

    mutating func add(_ other: [Int32: Int64]) { offsets.merge(other) { max($0, $1) } }

    /// A recreated log may end before the offsets that were skipped in the previous one.
    mutating func cap(_ ends: [Int32: Int64]) {
        for (partition, offset) in offsets { offsets[partition] = min(offset, ends[partition] ?? 0) }
    }

    mutating func settle(_ covered: [Int32: Int64]) {
        offsets = offsets.filter { $0.value > covered[$0.key] ?? -1 }
    }

    func isSettled(by covered: [Int32: Int64]) -> Bool {
        offsets.allSatisfy { $0.value <= covered[$0.key] ?? -1 }
    }

    // MARK: In the store, as `0:5,2:7`

    static func load(_ db: Database) throws -> WantedOffsets {
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

    func save(_ db: Database) throws {
        let text = offsets.sorted { $0.key < $1.key }.map { "\($0.key):\($0.value)" }.joined(separator: ",")
        try Meta.set(db, SyncMeta.snapshotWanted, isEmpty ? nil : text)
    }
}

extension SyncEngine {
    func wantedOffsets() throws -> WantedOffsets {
        try read { try WantedOffsets.load($0) }
    }

    /// Records that messages were skipped up to these offsets.
    func want(_ offsets: [Int32: Int64]) throws { try changeWanted { $0.add(offsets) } }

    /// Lowers the offsets to these ends: no snapshot of the topic can cover more.
    func capWanted(_ ends: [Int32: Int64]) throws { try changeWanted { $0.cap(ends) } }

    private func changeWanted(_ change: (inout WantedOffsets) -> Void) throws {
        try mapErrors {
            try database.write { db in
                let before = try WantedOffsets.load(db)
                var wanted = before
                change(&wanted)
                if wanted != before { try wanted.save(db) }
            }
        }
    }
}
