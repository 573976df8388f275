import Foundation
import GRDB
import MartletBus
import MartletCore
import MartletEngine
import MartletReplica
import MartletStore
import MartletWire
import Synchronization

/// Makes a snapshot of a node, and sends it to the topic.
///
/// A snapshot counts once its last message is on the topic; the maker sends that one when the broker has all others.
/// The maker has two sets of keys, and uses the one that its newest snapshot doesn't have, so that compaction never
/// removes a part of that one.
struct SnapshotMaker {
    let engine: SyncEngine
    let bus: any Bus
    /// The transactions' topic.
    let topic: String
    let partRows: Int
    let limit: MessageLimit
    var isStopped: () -> Bool = { false }

    func make(_ id: NodeID) throws {
        var slots = try SnapshotSlots.load(engine.session)
        slots.newest = 1 - slots.newest
        engine.messageGuard.refresh()
        limit.refresh()
        let framer = SnapshotFramer(
            snapshot: id, maker: engine.node, slot: slots.newest,
            maxBytes: engine.messageGuard.room(in: limit.messageBytes))
        let sender = try SnapshotSender(
            bus, limit, maxInFlightBytes: engine.configuration.maxInFlightBytes, isStopped: isStopped)
        let count = try engine.session.readStamped { db in
            try send(db, id, framer, sender)
        }
        // From now on, this is the newest snapshot, and the next one must not replace its messages, even if those that
        // are left over of an older one can't be erased.
        let former = slots.counts[slots.newest]
        slots.counts[slots.newest] = max(count, former)
        try slots.save(engine.session)
        guard former > count else { return }
        for number in count..<former { try sender.send(framer.eraser(number)) }
        try sender.finish()
        slots.counts[slots.newest] = count
        try slots.save(engine.session)
    }

    private func send(
        _ db: Database, _ id: NodeID, _ framer: SnapshotFramer, _ sender: SnapshotSender
    ) throws -> Int {
        var framer = framer
        // Held back by one part, because only the last part is marked as the last.
        var held: [UInt8]?
        func put(_ part: [UInt8], isLast: Bool) throws {
            for message in framer.messages(part, isLast: isLast) {
                try sender.send(engine.messageGuard.seal(message, topic: bus.topic, origin: framer.maker))
            }
        }
        let writer = try SnapshotWriter(
            db, engine: engine, topic: topic, limits: (partRows, limit.messageBytes * 9 / 10)
        ) { part in
            if let held { try put(held, isLast: false) }
            held = part
        }
        _ = try writer.write(id)
        try sender.finish()
        try put(held ?? [], isLast: true)
        try sender.finish()
        return framer.nextNumber
    }
}

/// The sets of message keys that a node's snapshots use.
struct SnapshotSlots: Equatable {
    var newest = 1
    /// The number of messages under each set.
    var counts = [0, 0]

    init() {}

    init?(_ text: String) {
        let numbers = text.split(whereSeparator: { ":,".contains($0) }).map { Int($0) }
        guard numbers.count == 3, let newest = numbers[0], let first = numbers[1], let second = numbers[2],
            (0...1).contains(newest)
        else { return nil }
        self.newest = newest
        counts = [first, second]
    }

    var text: String { "\(newest):\(counts[0]),\(counts[1])" }
}

extension SnapshotSlots {
    static func load(_ session: ReplicaSession) throws -> SnapshotSlots {
        try session.read { try Meta.text($0, SyncMeta.snapshotSlots).flatMap(SnapshotSlots.init) ?? SnapshotSlots() }
    }

    func save(_ session: ReplicaSession) throws {
        try session.writeMeta { db in
            try Meta.set(db, SyncMeta.snapshotSlots, text)
            try UnretainedRanges.noteInSnapshot(db)
        }
    }
}
