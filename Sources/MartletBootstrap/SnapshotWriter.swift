import Foundation
import GRDB
import MartletCore
import MartletEngine
import MartletReplica
import MartletStore
import MartletWire
import SwiftProtobuf

/// Writes everything that a node has merged as a snapshot, part by part, in one read transaction.
///
/// Writers and the applier continue meanwhile: readers of a write-ahead log block nobody. At most two parts of the rows
/// are in memory: one is encoded on another thread while the next one is read.
final class SnapshotWriter {
    struct Counts: Equatable {
        var rows = 0
        var tombstones = 0
    }

    private let db: Database
    private let context: ReplicaContext
    private let topic: String
    private let limits: (rows: Int, bytes: Int)
    private let emit: ([UInt8]) throws -> Void
    private var contents = WireSnapshotContents()
    private var bytes = 0
    private(set) var counts = Counts()
    private(set) var parts = 0
    private var digest: [UInt8] = []
    /// The part that was written last, until it is encoded and emitted.
    private var last: PartBehind?
    let encoder: SnapshotRowEncoder

    /// - Parameter emit: called with the bytes of each part.
    init(
        _ db: Database, engine: SyncEngine, topic: String, limits: (rows: Int, bytes: Int),
        emit: @escaping ([UInt8]) throws -> Void
    ) throws {
        self.db = db
        self.topic = topic
        self.limits = limits
        self.emit = emit
        context = try ReplicaContext(db, now: engine.now)
        encoder = try SnapshotRowEncoder(db, context)
    }

    /// - Returns: the header that was written.
    func write(_ snapshot: NodeID) throws -> WireSnapshotHeader {
        let header = try header(snapshot)
        try write(.header(header))
        for entity in encoder.entities.reversed() { try writeTombstones(of: entity) }
        for entity in encoder.entities { try encoder.forEachRow(of: entity, add) }
        try encoder.forEachPendingRow(add)
        try writeDeferred()
        try writeChunks()
        try flush()
        try emitLast()
        var trailer = WireSnapshotTrailer()
        trailer.rows = UInt64(counts.rows)
        trailer.tombstones = UInt64(counts.tombstones)
        trailer.parts = UInt64(parts)
        trailer.digest = Data(digest)
        try write(.trailer(trailer))
        try emitLast()
        return header
    }

    private func write(_ kind: WireSnapshotPart.OneOf_Kind) throws {
        let part = PartBehind(kind)
        try emitLast()
        last = part
        parts += 1
    }

    private func emitLast() throws {
        guard let part = try last?.result() else { return }
        last = nil
        digest = SnapshotFormat.digest(digest, hash: part.hash)
        try emit(part.bytes)
    }

    private func flush() throws {
        guard contents != WireSnapshotContents() else { return }
        try write(.contents(contents))
        contents = WireSnapshotContents()
        bytes = 0
    }

    /// Begins another part if the present one is full. A row that is as large as a receiver takes gets its own.
    private func makeRoom(for count: Int) throws {
        let isFull = contents.rows.count + contents.tombstones.count >= limits.rows
        if isFull || bytes + count > limits.bytes { try flush() }
        bytes += count
    }

    private func add(_ row: WireSnapshotRow, _ size: Int) throws {
        try makeRoom(for: size)
        contents.rows.append(row)
        counts.rows += 1
    }

    // MARK: The header

    private func header(_ snapshot: NodeID) throws -> WireSnapshotHeader {
        var header = WireSnapshotHeader(
            context, topic: topic, origins: try context.origins(db), names: encoder)
        header.snapshot = Data(snapshot.bytes)
        if let shape = try Meta.text(db, SyncMeta.topicShape), shape.hasPrefix("\(topic)/") {
            header.partitionCount = UInt32(shape.dropFirst(topic.count + 1)) ?? 0
        }
        header.positions = try positions()
        return header
    }

    private func positions() throws -> [WireSnapshotPosition] {
        // A partition of which messages were skipped is not covered.
        let wanted = try WantedOffsets.load(db)
        return try ReadProgress.snapshotPositions(db, of: topic).filter { wanted.offsets[$0.partition] == nil }
    }

    // MARK: Other contents

    private func writeTombstones(of entity: Entity) throws {
        let table = context.table(entity)
        try context.tombstones.forEach(db, of: entity.id) { stone in
            let identity = stone.identity
            // A delete that a filter keeps on this node is not published.
            if stone.stamp.node == .unpublished { return }
            // A row that was inserted again has the delete in its own clocks.
            if try table.find(db, identity) != nil { return }
            var tombstone = WireSnapshotTombstone()
            tombstone.entity = encoder.place(of: entity)
            tombstone.identity = try encoder.wire(identity)
            tombstone.deleted = encoder.stamp(stone.stamp)
            tombstone.lasting = try context.tombstones.isLasting(db, entity.id, identity)
            try makeRoom(for: identity.bytes.count + 20)
            contents.tombstones.append(tombstone)
            counts.tombstones += 1
        }
    }

    private func writeDeferred() throws {
        try DeferredChanges.forEachPayload(db) { payload in
            try makeRoom(for: payload.count)
            contents.deferred.append(Data(try payload.joined()))
        }
    }

    private func writeChunks() throws {
        try Chunks.forEach(db, besidesThoseOf: context.node) { chunk in
            try makeRoom(for: chunk.payload.count + 40)
            contents.chunks.append(chunk)
        }
    }
}
