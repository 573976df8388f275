import Foundation
import MartletStore
import MartletSync

/// The identity of a store after its file was replaced.
extension Simulation {
    /// Checks, as an agent does before anything else, whether the store's messages on the topic are its own, and gives
    /// the store a new node ID if they aren't.
    ///
    /// - Returns: false if the topic can't be queried. Until then, nothing is stamped, numbered or sent.
    func isSure(_ node: SimulatedNode) throws -> Bool {
        guard !plan.faults.isDisjoint(with: [.restore, .copy, .fork]), !node.isSure else { return true }
        let open = try start(node)
        if node.isCopy { try fork(node, open) }
        do {
            try open.engine.checkIdentity(on: node.link, snapshots: open.snapshots)
        } catch let error as StoreError where error.code == .copied {
            try fork(node, open)
        } catch let error as BusError {
            note("can't check its identity (\(error.code.rawValue))")
            return false
        }
        node.isSure = true
        return true
    }

    private func fork(_ node: SimulatedNode, _ open: SimulatedNode.Open) throws {
        let report = try open.engine.fork(as: UUIDs.make(random.bytes(16)), store: UUIDs.make(random.bytes(16)))
        open.publisher.rewind(to: 0)
        rename(node, report.node.uuid)
        note("takes a node ID of its own, and republishes \(report.republished) transactions under it")
    }

    func rename(_ node: SimulatedNode, _ id: UUID) {
        if !node.isCopy { retired.insert(node.id.uuidString) }
        node.isCopy = false
        node.formerIDs.append(node.id)
        node.id = id
    }

    /// Creates another node, with a copy of the file in its current state.
    func copy(_ node: SimulatedNode) throws {
        let open = try start(node)
        guard node.copy == nil, try isSure(node) else { return }
        _ = try open.engine.apply([], topic: topic.name)
        // If the broker lost messages of the former machine, nobody else would have them.
        if random.once(in: 3), plan.faults.isDisjoint(with: [.wipe, .recreate, .forget, .prune, .fewerPartitions]) {
            try move(node)
            return note("continues on another machine")
        }
        let made = addNode(like: node)
        try copyFiles(from: node.path, to: made.path)
        made.id = node.id
        made.isCopy = true
        made.life = 1
        made.written = node.written
        made.inherited = node.written.count
        node.copy = made
        note("is copied: \(made.name) begins with \(made.inherited) transactions of its own")
    }

    /// Continues the file on another machine. The former machine is gone, with everything in its queues.
    private func move(_ node: SimulatedNode) throws {
        node.crash()
        _ = try topic.published.forgetUnstored(of: node.id.uuidString)
        retired.insert(node.id.uuidString)
        node.isCopy = true
        node.life += 1
        node.inherited = node.written.count
    }

    /// Stops the node, which takes another node ID at its next start, as after `martlet fork`: sometimes in the middle
    /// of enqueuing its changes, or after only some of its chunks were sent.
    func takeNewID(_ node: SimulatedNode) throws {
        let open = try start(node)
        guard !node.isCopy, try isSure(node) else { return }
        switch random.below(4) {
        case 0: _ = try open.engine.apply([], topic: topic.name)
        case 1:
            open.publisher.step()
            node.link.producer?.store(1 + random.below(4))
        case 2:
            Machine.die(afterWrites: random.below(12))
            do {
                _ = try open.engine.apply([], topic: topic.name)
            } catch  where Machine.hasDied {}
        default: break
        }
        try move(node)
        note("stops, and will be another node")
    }

    /// Copies the file in its current state. Transactions without stamps would count as new work of the restored store,
    /// so the engine stamps them first.
    func backUp(_ node: SimulatedNode) throws {
        let open = try start(node)
        guard try isSure(node) else { return }
        _ = try open.engine.apply([], topic: topic.name)
        try copyFiles(from: node.path, to: node.backupPath)
        node.backup = node.written
        note("is backed up, with \(node.written.count) transactions of its own")
    }

    /// Replaces the file with the backup.
    func restore(_ node: SimulatedNode) throws {
        guard let backup = node.backup else { return note("has no backup") }
        node.crash()
        let taken = Set(node.written.dropFirst(backup.count).map(\.id))
        let published = try ([node.id] + node.formerIDs).flatMap {
            try topic.published.forgetUnstored(of: $0.uuidString).flatMap(\.changes)
        }
        for change in published where change.entity == "sim_write" {
            guard case .text(let id) = try change.identity.values().first, taken.contains(id) else { continue }
            returning.insert(id)
        }
        try copyFiles(from: node.backupPath, to: node.path)
        node.written = backup
        node.inherited = backup.count
        node.life += 1
        node.highestMark = 0
        node.forgetReaders()
        let found = returning.intersection(taken).count
        note("is restored from its backup, and loses \(taken.count) transactions, of which the topic has \(found)")
        _ = try start(node)
    }

    /// Copies the file with its write-ahead log, between two writes: the state of a machine after a power cut.
    private func copyFiles(from source: String, to target: String) throws {
        let files = FileManager.default
        for suffix in ["-wal", "-shm", ""] where files.fileExists(atPath: target + suffix) {
            try files.removeItem(atPath: target + suffix)
        }
        for suffix in ["", "-wal"] where files.fileExists(atPath: source + suffix) {
            try files.copyItem(atPath: source + suffix, toPath: target + suffix)
        }
    }
}
