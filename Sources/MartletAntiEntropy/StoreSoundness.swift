import Foundation
import GRDB
import MartletCore
import MartletMerge
public import MartletReplica
import MartletStore

/// Whether a store's metadata is consistent with its rows, and with itself.
public struct StoreSoundness: Sendable, Equatable {
    /// SQLite's result: `ok`, or the first problems.
    public var integrity = "ok"
    public var foreignKeyViolationCount = 0
    /// Rows that disappeared without a trace in the history, by table.
    public var vanished: [String: Int] = [:]
    /// Rows that appeared without a trace in the history, by table.
    public var appeared: [String: Int] = [:]
    /// The number of rows whose stable ID an earlier row already has, by table.
    public var sameNames: [String: Int] = [:]
    /// Rows whose clocks name a node that the store does not know, or a time that its own clock has not reached, by
    /// table.
    public var badClocks: [String: Int] = [:]
    /// The differences that checks have found between nodes.
    public var divergences: [Divergence] = []

    public var isSound: Bool {
        integrity == "ok" && foreignKeyViolationCount == 0 && vanished.isEmpty && appeared.isEmpty && sameNames.isEmpty
            && badClocks.isEmpty
    }

    /// Reads the whole file and writes nothing. An agent may run on the store.
    ///
    /// - Throws: ``/MartletCore/StoreError`` when it can't be opened at all.
    public static func examine(_ path: String) throws -> StoreSoundness {
        var configuration = StoreConfiguration()
        configuration.isReadOnly = true
        let store = try Store(path: path, configuration: configuration)
        let result = Result {
            var soundness = try store.read { db in
                var reader = SoundnessReader(db)
                return try reader.read()
            }
            soundness.divergences = try store.divergences()
            return soundness
        }
        try store.close()
        return try result.get()
    }
}

/// Examines a store in one read transaction.
private struct SoundnessReader {
    let db: Database
    var found = StoreSoundness()

    init(_ db: Database) { self.db = db }

    mutating func read() throws -> StoreSoundness {
        found.integrity = try IntegrityCheck.run(db)
        guard found.integrity == "ok" else { return found }
        found.foreignKeyViolationCount = try ForeignKeyCheck.run(db).violationCount
        // A store that never synced has neither stable IDs nor clocks.
        guard let uuid = try Meta.text(db, SyncMeta.node).flatMap(UUID.init(uuidString:)),
            try NodeDirectory.number(db, of: NodeID(uuid)) != nil
        else { return found }
        let context = try ReplicaContext(db, now: { WallClock.milliseconds })
        let unstamped = try ComparedStore.unstamped(db, context)
        for entity in context.catalog.entities {
            if entity.isKeyedByInteger {
                try readKeyed(entity)
            } else {
                try readNamed(entity, context, unstamped[entity.id] ?? [])
            }
            try readClocks(entity, context)
        }
        return found
    }

    private mutating func readKeyed(_ entity: Entity) throws {
        guard let key = entity.integerKey?.quotedName else { return }
        let mismatches = try SideTable.mismatches(db, of: entity, key: key)
        if mismatches.vanished > 0 { found.vanished[entity.name] = mismatches.vanished }
        if mismatches.appeared > 0 { found.appeared[entity.name] = mismatches.appeared }
        if mismatches.repeated > 0 { found.sameNames[entity.name] = mismatches.repeated }
    }

    private mutating func readNamed(
        _ entity: Entity, _ context: ReplicaContext, _ unstamped: Set<StableID>
    ) throws {
        let table = context.table(entity)
        var appeared = 0
        try SnapshotRowEncoder(db, context).forEachRecord(of: entity) { record in
            if try table.side.find(db, record.identity) == nil, !unstamped.contains(record.identity) {
                appeared += 1
            }
        }
        var vanished = 0
        func look(_ identity: StableID) throws {
            guard try table.side.find(db, identity) != nil, !unstamped.contains(identity) else { return }
            if try table.find(db, identity) == nil { vanished += 1 }
        }
        try SideTable.forEachIdentity(db, of: entity, look)
        for identity in context.recent.identities(of: entity.id) where try !table.hasName(db, identity) {
            try look(identity)
        }
        if vanished > 0 { found.vanished[entity.name] = vanished }
        if appeared > 0 { found.appeared[entity.name] = appeared }
    }

    private mutating func readClocks(_ entity: Entity, _ context: ReplicaContext) throws {
        var bad = 0
        let last = context.clock.last
        try RecordReader(db, context).forEach(entity) { record in
            let stamps =
                [record.clocks.inserted, record.clocks.deleted].compactMap(\.self)
                + record.clocks.exceptions.entries.map(\.stamp)
            if stamps.contains(where: { $0.time > last || $0.time != .zero && $0.node == .none }) { bad += 1 }
        }
        if bad > 0 { found.badClocks[entity.name] = bad }
    }
}
