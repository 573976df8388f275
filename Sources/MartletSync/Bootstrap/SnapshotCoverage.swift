import Foundation
import GRDB
import MartletStore
import Synchronization

/// Takes over what a snapshot covers, once all of it was merged: offsets, and which transactions have come. Nothing ever goes
/// back.
struct SnapshotCoverage {
    let engine: SyncEngine
    let db: Database
    let context: EngineContext
    let header: WireSnapshotHeader

    /// - Parameter topic: the topic that this node reads, and how many partitions it has. Offsets say nothing of another one.
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

/// Which transactions of an origin have come: all up to one, without those in gaps. Pure.
struct SequenceSet: Equatable {
    var applied: Int64
    /// Ascending, and apart from each other.
    var gaps: [ClosedRange<Int64>]

    init(applied: Int64, gaps: [ClosedRange<Int64>]) {
        self.applied = applied
        self.gaps = gaps
    }

    init(_ origin: WireSnapshotOrigin) throws(StoreError) {
        guard origin.gaps.count <= WireBounds.maxGaps else {
            throw SnapshotFormat.damaged("an origin has \(origin.gaps.count) gaps")
        }
        var gaps: [ClosedRange<Int64>] = []
        var last: UInt64 = 0
        for gap in origin.gaps {
            guard gap.first > last, gap.first <= gap.last, gap.last <= origin.applied else {
                throw SnapshotFormat.damaged("the gaps of an origin are invalid")
            }
            last = gap.last
            gaps.append(Int64(clamping: gap.first)...Int64(clamping: gap.last))
        }
        self.init(bounding: Int64(clamping: origin.applied), gaps)
    }

    /// What is beyond the range of sequences was never sent: it has not come, nor is it missing.
    ///
    /// Of stores and nodes that once took a message's word for how far its origin had come.
    init(bounding applied: Int64, _ gaps: [ClosedRange<Int64>]) {
        let limit = WireBounds.greatest
        self.applied = min(applied, limit)
        self.gaps = gaps.filter { $0.lowerBound <= limit }.map { $0.clamped(to: 1...limit) }
        guard applied > limit, let last = self.gaps.last, last.upperBound == limit else { return }
        self.gaps.removeLast()
        self.applied = last.lowerBound - 1
    }

    /// What has come, as ranges.
    var ranges: [ClosedRange<Int64>] {
        var ranges: [ClosedRange<Int64>] = []
        var next: Int64 = 1
        for gap in gaps {
            if gap.lowerBound > next { ranges.append(next...(gap.lowerBound - 1)) }
            next = gap.upperBound + 1
        }
        if next <= applied { ranges.append(next...applied) }
        return ranges
    }

    func union(_ other: SequenceSet) -> SequenceSet {
        let highest = max(applied, other.applied)
        let (mine, theirs) = (missing(through: highest), other.missing(through: highest))
        var gaps: [ClosedRange<Int64>] = []
        var (a, b) = (0, 0)
        while a < mine.count, b < theirs.count {
            if mine[a].overlaps(theirs[b]) { gaps.append(mine[a].clamped(to: theirs[b])) }
            if mine[a].upperBound < theirs[b].upperBound { a += 1 } else { b += 1 }
        }
        return SequenceSet(applied: highest, gaps: gaps)
    }

    private func missing(through highest: Int64) -> [ClosedRange<Int64>] {
        highest > applied ? gaps + [(applied + 1)...highest] : gaps
    }
}
