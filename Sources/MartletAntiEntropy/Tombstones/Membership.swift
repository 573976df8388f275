import Foundation
import GRDB
import MartletCore
import MartletMerge
import MartletReplica
import MartletStore
import MartletWire

/// The promise in a check message: all of its sender's transactions after this many have a later stamp than its clock.
struct WatermarkReport {
    var name: String
    var applied: Int64
    /// The sequence up to which the sender has all of the receiver's own transactions.
    var delivered: Int64
    var clock: HybridTime
    /// The watermark up to which the sender has collected tombstones.
    var collected: HybridTime

    init(_ message: AntiEntropyMessage, to receiver: NodeID) {
        let header = message.wire.header
        name = header.makerName
        applied = message.vector.sets[message.sender]?.applied ?? 0
        delivered = message.vector.sets[receiver]?.prefix ?? 0
        clock = HybridTime(rawValue: header.hlc)
        collected = HybridTime(rawValue: header.collected)
    }
}

/// The promises of other nodes, in the store: see ``/MartletMerge/TombstoneWatermark``.
struct Membership {
    let db: Database
    let context: ReplicaContext

    /// Stores what a message says about its sender: how many transactions it had, and the state of its clock at that
    /// time.
    func note(_ report: WatermarkReport, from sender: NodeID) throws {
        try Members.note(
            db, context.nodes.number(db, sender, name: report.name), sequence: report.applied, clock: report.clock,
            heard: context.now())
        let known = try context.meta(db, SyncMeta.knownCollected) ?? 0
        let collected = report.collected.stored
        if collected > known { try context.meta.set(db, SyncMeta.knownCollected, collected) }
    }

    /// Stores how many of this node's transactions the sender has.
    func noteDelivered(_ report: WatermarkReport, to receiver: NodeID) throws {
        try Members.noteDelivered(
            db, context, to: context.nodes.number(db, receiver, name: report.name), report.delivered)
    }

    /// Returns all other nodes that ever sent anything.
    func members() throws -> [TombstoneWatermark.Member] {
        let vector = try VersionVector(context.origins(db))
        return try Members.all(db).filter { $0.node != context.node }.map { known in
            var member = TombstoneWatermark.Member(heard: known.heard)
            if let clock = known.clock, let sequence = known.sequence {
                member.watermark = clock
                member.isReceived = vector.sets[known.node].map { $0.hasAll(through: sequence) } ?? (sequence == 0)
            }
            return member
        }
    }
}
