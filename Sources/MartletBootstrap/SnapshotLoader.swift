import Foundation
import GRDB
import MartletBus
import MartletCore
import MartletEngine
import MartletReplica
import MartletStore
import MartletWire

/// Loads one snapshot part by part. Each part is applied in one SQLite transaction together with the progress, so that
/// loading continues where a crash or a lost connection interrupted it.
struct SnapshotLoader {
    let engine: SyncEngine
    let bus: any Bus
    /// The transactions' topic, and its number of partitions.
    let topic: String
    let partitionCount: Int
    /// True if the snapshot was loaded before and is loaded again.
    var isAgain = false
    /// Called between reads; true ends the load. The next one continues where it ended.
    var isStopped: () -> Bool = { false }

    /// - Parameter next: called after each applied part; returns whether to go on.
    /// - Returns: the progress. Not finished if `next` returned false.
    func load(
        _ id: NodeID, _ entry: SnapshotDirectory.Entry, next: (SnapshotProgress) -> Bool
    ) throws -> SnapshotProgress {
        guard let header = try entry.header?.get(), let count = entry.count else {
            throw SnapshotFormat.damaged("it is incomplete")
        }
        try check(header, id, entry.maker)
        var place = try engine.session.writeMeta { db in
            try SnapshotPlace.begin(db, header, again: isAgain, now: engine.now())
        }
        var progress = SnapshotProgress(
            id: id.uuid, makerName: header.makerName, messages: place.next, messageCount: count, rows: place.rows,
            tombstones: place.tombstones, isFinished: place.isFinished)
        let reader = try SnapshotReader(
            bus, id, entry, engine.messageGuard, node: engine.node, isStopped: isStopped)
        var parts = PartsAhead(reader, messageCount: count)
        while !progress.isFinished {
            if isStopped() { throw CancellationError() }
            let (part, following) = try parts.take(from: place.next)
            place = try engine.session.transaction { db, context in
                try apply(part, following, header, &progress, db, context)
            }
            progress.messages = place.next
            progress.rows = place.rows
            progress.tombstones = place.tombstones
            progress.isFinished = place.isFinished
            if !next(progress) { break }
        }
        return progress
    }

    private func check(_ header: WireSnapshotHeader, _ id: NodeID, _ maker: NodeID) throws {
        guard NodeID(bytes: header.snapshot) == id, NodeID(bytes: header.maker) == maker else {
            throw SnapshotFormat.damaged("its header belongs to another snapshot")
        }
        let ahead = HybridTime(rawValue: header.hlc).milliseconds - engine.now()
        guard ahead <= engine.session.maxClockSkew else {
            throw StoreError(
                .invalidArgument,
                """
                The snapshot of \(header.makerName.isEmpty ? maker.description : header.makerName) is \(ahead / 1000) \
                s ahead of this node's clock.
                """,
                hint: "Correct the clock that is wrong. Martlet retries the snapshot.")
        }
    }

    private func apply(
        _ part: DecodedSnapshotPart, _ following: Int, _ header: WireSnapshotHeader, _ progress: inout SnapshotProgress,
        _ db: Database, _ context: ReplicaContext
    ) throws -> SnapshotPlace {
        guard var place = try SnapshotPlace.find(db, header.snapshot), !place.isFinished,
            place.next == progress.messages
        else {
            throw StoreError(
                .locked, "Another process is loading a snapshot into this store.", hint: "Stop one of the two.")
        }
        let applier = try SnapshotApplier(engine: engine, db: db, context: context, header: header)
        switch part.kind {
        case .header(let found):
            guard found == header, place.parts == 0 else { throw SnapshotFormat.damaged("it has two headers") }
            try UnmentionedRows(db: db, context: context).begin(header, unseen: applier.unseen())
        case .contents(let contents):
            guard place.parts > 0 else { throw SnapshotFormat.damaged("its header is missing") }
            try applier.apply(contents, rows: part.rows)
            place.rows += part.rows.count
            place.tombstones += contents.tombstones.count
        case .trailer(let trailer):
            guard trailer.digest.elementsEqual(place.digest), trailer.parts == UInt64(place.parts),
                trailer.rows == UInt64(place.rows), trailer.tombstones == UInt64(place.tombstones)
            else { throw SnapshotFormat.damaged("its contents do not match its end marker") }
            try UnmentionedRows(db: db, context: context).finish(header)
            try context.applied.close(
                db, mark: TransactionMark(author: TransactionAuthor.sync, context: "snapshot"))
            try SnapshotCoverage(engine: engine, db: db, context: context, header: header).take(
                topic: topic, partitionCount: partitionCount)
            place.isFinished = true
        }
        place.next = following
        place.parts += 1
        place.digest = SnapshotFormat.digest(place.digest, hash: part.hash)
        try place.save(db, header.snapshot, now: engine.now())
        return place
    }
}
