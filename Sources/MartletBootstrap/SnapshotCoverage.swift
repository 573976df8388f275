import Foundation
import GRDB
import MartletCore
import MartletEngine
import MartletReplica
import MartletStore
import MartletWire
import Synchronization

/// Takes over what a merged snapshot covers: offsets, and which transactions have arrived. Nothing ever goes back.
struct SnapshotCoverage {
    let engine: SyncEngine
    let db: Database
    let context: ReplicaContext
    let header: WireSnapshotHeader

    /// - Parameter topic: the topic that this node reads, with its number of partitions. Offsets of another topic mean
    ///   nothing here.
    func take(topic: String, partitionCount: Int) throws {
        try takeOrigins()
        try forgetChunks()
        guard header.topic == topic, Int(header.partitionCount) == partitionCount else { return }
        var wanted = try WantedOffsets.load(db)
        wanted.settle(Dictionary(header.positions.map { ($0.partition, $0.next) }, uniquingKeysWith: max))
        try wanted.save(db)
        guard try takeOffsets(topic) else { return }
        engine.snapshots.noteMovedOffsets()
        try context.meta.set(db, SyncMeta.rescanResumes, 0)
        guard try context.meta(db, SyncMeta.acknowledged) ?? 0 > 0 else { return }
        // Skipped messages are not read back, so the count of this node's confirmed transactions starts again from
        // those that the snapshot has.
        try OwnCount.restart(db, node: context.node, resumes: false)
    }

    private func takeOrigins() throws {
        for origin in header.origins {
            guard let node = NodeID(bytes: origin.node) else { throw SnapshotFormat.damaged("a node ID is not a UUID") }
            if node == context.node { continue }
            let number = try context.nodes.number(db, node)
            try context.nodes.note(db, node, name: origin.name)
            let applied = try ReadProgress.applied(db, of: number) ?? 0
            let gaps = try SequenceGaps.all(db, node: number)
            let merged = try SequenceSet(applied: applied, gaps: gaps).union(SequenceSet(origin))
            try ReadProgress.raiseApplied(db, of: number, to: merged.applied, heard: header.madeMs)
            try SequenceGaps.replace(db, node: number, merged.gaps)
        }
    }

    /// Deletes chunks of transactions that are complete now.
    private func forgetChunks() throws {
        let sequences = ReceivedSequences(db, context)
        let chunks = Chunks(db, context)
        for transaction in try Chunks.transactions(db, besidesThoseOf: context.node) {
            let envelope = WireEnvelope(origin: transaction.origin, sequence: transaction.sequence)
            if try !sequences.isNew(envelope) { try chunks.remove(transaction) }
        }
    }

    /// - Returns: true if any offset was behind the snapshot's.
    private func takeOffsets(_ topic: String) throws -> Bool {
        var isBehind = false
        for position in header.positions where try ReadProgress.advanceOffset(db, topic, to: position) {
            isBehind = true
        }
        return isBehind
    }
}
