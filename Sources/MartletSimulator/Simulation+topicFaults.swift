import Foundation
import GRDB
import MartletSync

/// Faults of the topic.
extension Simulation {
    func damageTopic(_ action: Action, _ node: SimulatedNode) throws {
        let partition = random.below(topic.partitions.count)
        let messages = topic.partitions[partition].messages
        switch action {
        case .duplicate:
            guard !messages.isEmpty else { return note("nothing to repeat") }
            let found = random.pick(messages)
            var again = OutgoingMessage(key: found.key, headers: found.headers, payload: found.payload, tag: 0)
            again.isNull = found.isNull
            topic.append(again)
            note("message \(found.position.offset) of partition \(partition) comes again")
        case .corrupt:
            node.link.corruptCount = 1 + random.below(2)
            note("the next messages come corrupted first")
        case .forget:
            guard !messages.isEmpty else { return note("nothing to forget") }
            let count = 1 + random.below(min(4, messages.count))
            topic.forget(partition, count)
            note("the broker forgets the last \(count) messages of partition \(partition)")
        case .wipe:
            topic.wipe(partitionCount: topic.partitions.count)
            note("the topic is wiped")
        case .recreate:
            if random.once(in: 2) {
                try divide(node)
                topic.addPartition()
                note("the topic gets another partition")
            } else {
                topic.wipe(partitionCount: topic.partitions.count + 1)
                note("the topic is recreated, with \(topic.partitions.count) partitions")
            }
        case .shrinkTopic:
            topic.wipe(partitionCount: max(1, topic.partitions.count - 1))
            note("the topic is recreated, with only \(topic.partitions.count) partitions")
        case .loseSnapshots: loseSnapshots()
        case .prune: try prune(partition)
        default: break
        }
    }

    /// Drops the beginning of the topic for snapshots, or everything, whoever is loading one.
    private func loseSnapshots() {
        let count = snapshotTopic.partitions[0].messages.count
        guard count > 0 else { return note("no snapshot to lose") }
        if random.once(in: 3) {
            snapshotTopic.wipe(partitionCount: 1)
            note("the topic for snapshots is wiped")
        } else {
            let gone = 1 + random.below(count)
            snapshotTopic.prune(0, gone)
            note("the oldest \(gone) of \(count) messages of snapshots are gone")
        }
    }

    /// Sends only the first chunks of a transaction, so that the others go to another partition.
    private func divide(_ node: SimulatedNode) throws {
        guard plan.faults.contains(.chunks), try isSure(node) else { return }
        try start(node).publisher.step()
        node.link.producer?.store(1 + random.below(4))
    }

    /// Drops messages that every node has read, or that a snapshot covers.
    private func prune(_ partition: Int) throws {
        // Other nodes are queried too, and their disks aren't full.
        let room = Machine.room
        Machine.room = nil
        defer { Machine.room = room }
        var count = 0
        for message in topic.partitions[partition].messages {
            guard try isCovered(message) || isEverywhere(message) else { break }
            // Snapshots may be lost, so one node has to know whatever the topic drops.
            if plan.faults.contains(.lostSnapshots), try !hasRead(message, nodes[0]) { break }
            count += 1
        }
        count = random.below(count + 1)
        topic.prune(partition, count)
        note("the oldest \(count) messages of partition \(partition) are gone")
    }

    /// A message that every node has now may be missing later on a restored node.
    private func isEverywhere(_ message: IncomingMessage) throws -> Bool {
        try !plan.faults.contains(.restore) && nodes.allSatisfy { try has(message, $0) }
    }

    private func hasRead(_ message: IncomingMessage, _ node: SimulatedNode) throws -> Bool {
        try start(node).other.read { try ReadProgress.offsets($0, of: topic.name) }.contains {
            $0.partition == message.position.partition && $0.offset > message.position.offset
        }
    }

    private func has(_ message: IncomingMessage, _ node: SimulatedNode) throws -> Bool {
        guard let key = PublishedLog.Key(message.headers) else { return true }
        if key.origin == node.id.uuidString {
            guard plan.faults.contains(.copy) else { return true }
            // A copy reads messages of its former self that the former self may not have read back yet.
            return try start(node).other.read { db in
                try Int64.fetchOne(db, sql: "SELECT value FROM _martlet_meta WHERE key = 'confirmed'") ?? 0
                    >= key.sequence
            }
        }
        guard let uuid = UUID(uuidString: key.origin) else { return true }
        return try start(node).other.read { db in
            try Bool.fetchOne(
                db,
                sql: """
                    SELECT 1 FROM _martlet_origins AS o JOIN _martlet_nodes AS n ON n.id = o.node
                    WHERE n.uuid = ?1 AND o.applied >= ?2
                    AND NOT EXISTS (SELECT 1 FROM _martlet_gaps WHERE node = o.node AND first <= ?2 AND last >= ?2)
                    """, arguments: [Data(NodeID(uuid).bytes), key.sequence]) ?? false
        }
    }
}
