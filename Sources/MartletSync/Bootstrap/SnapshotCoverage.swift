import Foundation
import GRDB
import MartletStore
import Synchronization

/// Takes over what a snapshot covers, once all of it was merged: offsets, and which transactions have come. Nothing
/// ever goes back.
struct SnapshotCoverage {
    let engine: SyncEngine
    let db: Database
    let context: EngineContext
    let header: WireSnapshotHeader

    /// - Parameter topic: the topic that this node reads, and how many partitions it has. Offsets say nothing of
    ///   another one.
    func take(topic: String, partitionCount: Int) throws {
        try takeOrigins()
        try forgetChunks()
        guard header.topic == topic, Int(header.partitionCount) == partitionCount else { return }
        var wanted = try WantedOffsets.load(db)
        wanted.settle(Dictionary(header.positions.map { ($0.partition, $0.next) }, uniquingKeysWith: max))
        try wanted.save(db)
        guard try takeOffsets(topic) else { return }
        engine.offsetLeaps.add(1, ordering: .relaxed)
        guard try context.meta(db, SyncMeta.acknowledged) ?? 0 > 0 else { return }
        // What is passed over is not read back: this node's own are counted again, from what the snapshot has of them.
        try OwnChunks.forget(db, context.node)
        try context.setMeta(db, SyncMeta.confirmed, 0)
        try context.setMeta(db, SyncMeta.rescan, 1)
    }

    private func takeOrigins() throws {
        for origin in header.origins {
            guard let node = NodeID(bytes: origin.node) else { throw SnapshotFormat.damaged("a node ID is not a UUID") }
            if node == context.node { continue }
            let number = try context.nodes.number(db, node)
            try context.nodes.note(db, node, name: origin.name)
            let applied =
                try Int64.fetchOne(db, sql: ReadProgress.findOrigin, arguments: [number]) ?? 0
            let gaps = try SequenceGaps.all(db, node: number)
            let merged = try SequenceSet(applied: applied, gaps: gaps).union(SequenceSet(origin))
            try db.execute(sql: ReadProgress.setApplied, arguments: [number, merged.applied, header.madeMs])
            try SequenceGaps.replace(db, node: number, merged.gaps)
        }
    }

    /// Chunks of transactions that are here now.
    private func forgetChunks() throws {
        let receiver = Receiver(engine: engine, db: db, context: context, topic: "")
        let chunks = try Row.fetchAll(
            db, sql: "SELECT DISTINCT origin, sequence FROM _martlet_chunks WHERE origin <> ?",
            arguments: [Data(context.node.bytes)])
        for chunk in chunks {
            guard let origin = NodeID(bytes: chunk["origin"] as Data) else { continue }
            let envelope = WireEnvelope(origin: origin, sequence: chunk["sequence"])
            if try !receiver.isNew(envelope) { try receiver.forgetChunks(envelope) }
        }
    }

    /// - Returns: true where any was behind.
    private func takeOffsets(_ topic: String) throws -> Bool {
        var isBehind = false
        for position in header.positions {
            try db.execute(
                sql: "\(ReadProgress.setOffset) WHERE excluded.value > value",
                arguments: [
                    topic, position.partition, position.next, position.origin.isEmpty ? nil : position.origin,
                    position.sequence == 0 ? nil : Int64(position.sequence),
                    position.hasAppendedMs ? position.appendedMs : nil,
                ])
            if db.changesCount > 0 { isBehind = true }
        }
        return isBehind
    }
}
