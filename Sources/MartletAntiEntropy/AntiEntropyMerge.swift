import Foundation
import GRDB
import MartletCore
import MartletEngine
import MartletMerge
import MartletReplica
import MartletStore
import MartletWire

/// Merges the rows of another node that this node should have, in the caller's transaction, in which every local change
/// is enqueued.
///
/// Takes only rows of transactions that this node counts as received. The others are on their way: a node is never
/// ahead of the transactions that it claims to have, or the next node would take the difference for a loss.
struct AntiEntropyMerge {
    let engine: SyncEngine
    let db: Database
    let context: ReplicaContext
    let header: WireSnapshotHeader
    let sender: NodeID
    /// Returns true for nodes of which this node has every transaction that the sender has.
    let isCovered: (NodeID) -> Bool
    /// Nodes whose answer is awaited if one stamp has two values.
    let present: Set<NodeID>

    /// - Returns: what was missing or different here.
    func merge(_ received: [AntiEntropyRows.ReceivedRow]) throws -> [FoundDivergence] {
        let applier = Applier(db, context)
        var found: [FoundDivergence] = []
        var later: [AntiEntropyRows.ReceivedRow] = []
        var now: [AntiEntropyRows.ReceivedRow] = []
        for one in received { if try isReachable(one, applier) { now.append(one) } else { later.append(one) } }
        try merge(now, applier, &found)
        // Whether a row that refers to a lost row is lost itself shows only once the lost row is back. If that one
        // can't be restored now, the next check continues.
        later = try later.filter { try isReachable($0, applier) }
        try merge(later, applier, &found)
        guard !found.isEmpty else { return [] }
        try context.applied.close(
            db, mark: TransactionMark(author: TransactionAuthor.sync, context: "check"))
        context.clock.note()
        try review(&found, received, applier)
        try DivergenceLog(db: db, context: context, sender: sender).record(found)
        return found
    }

    /// Returns false if the row's identity is derived from a row that is not in this store, and nothing is known of it.
    private func isReachable(_ received: AntiEntropyRows.ReceivedRow, _ applier: Applier) throws -> Bool {
        let table = received.change.table
        guard !table.recordsNames, case .alive? = received.record.existence else { return true }
        return try context.resolver.localValues(db, table.entity, received.change.identity) != nil
            || applier.pendingRows.load(table, received.change.identity) != nil
    }

    private func merge(
        _ received: [AntiEntropyRows.ReceivedRow], _ applier: Applier, _ found: inout [FoundDivergence]
    ) throws {
        var changes: [RemoteChange] = []
        for one in received {
            let mine = try applier.record(one.change.table, one.change.identity)
            let comparison = RowComparison(mine: mine, theirs: one.record, columns: one.change.entity.comparedColumns)
            guard !comparison.isSame else { continue }
            var judged = Judged(mine: mine, received: one)
            judge(comparison, &judged)
            found += judged.found
            guard judged.takesExistence || !judged.slots.isEmpty else { continue }
            let row = try prepare(judged)
            changes.append(change(judged, row: row))
        }
        guard !changes.isEmpty else { return }
        context.clock.observe(HybridTime(rawValue: header.hlc))
        try applier.apply(states: changes)
    }

    // MARK: Judging rows

    private struct Judged {
        var mine: RowRecord?
        var received: AntiEntropyRows.ReceivedRow
        var found: [FoundDivergence] = []
        var takesExistence = false
        /// Columns to take over.
        var slots: Set<Int> = []
        /// Those of them that have the same stamp in this store.
        var tied: Set<Int> = []

        mutating func note(
            _ kind: Divergence.Kind, _ slot: Int?, here: Stamp?, there: Stamp, _ outcome: Divergence.Outcome = .repaired
        ) {
            found.append(
                FoundDivergence(
                    kind: kind, outcome: outcome, entity: received.change.entity, identity: received.change.identity,
                    slot: slot, here: here, there: there))
        }
    }

    private func judge(_ comparison: RowComparison, _ judged: inout Judged) {
        let theirs = judged.received.record
        if comparison.isExistenceNewer, let existence = theirs.existence, isCovered(existence.stamp.node) {
            judged.takesExistence = true
            let isAlive = if case .alive = existence { true } else { false }
            judged.note(
                isAlive ? .missingRow : .missingDelete, nil, here: judged.mine?.existence?.stamp, there: existence.stamp
            )
        }
        for slot in comparison.newer {
            guard let register = theirs.register(slot), isCovered(register.stamp.node) else { continue }
            judged.slots.insert(slot)
            guard !judged.takesExistence else { continue }
            judged.note(.olderValue, slot, here: judged.mine?.register(slot)?.stamp, there: register.stamp)
        }
        let rule = TieRule(node: context.node, sender: sender, present: present)
        for slot in comparison.tied {
            guard let mine = judged.mine?.register(slot), let other = theirs.register(slot) else { continue }
            let takesTheirs = rule.takesTheirs(mine.stamp, mine: mine.value, theirs: other.value)
            if takesTheirs == true {
                judged.slots.insert(slot)
                judged.tied.insert(slot)
            }
            judged.note(
                .otherValue, slot, here: mine.stamp, there: other.stamp,
                takesTheirs.map { $0 ? .repaired : .kept } ?? .open)
        }
    }

    /// - Parameter row: the integer key that the row had in this store.
    private func change(_ judged: Judged, row: Int64?) -> RemoteChange {
        var change = judged.received.change
        let theirs = judged.received.record.clocks
        func covered(_ stamp: Stamp?) -> Stamp? { stamp.flatMap { $0 != .zero && isCovered($0.node) ? $0 : nil } }
        let inserted = judged.takesExistence ? covered(theirs.inserted) : judged.mine?.clocks.inserted
        let deleted = judged.takesExistence ? covered(theirs.deleted) : nil
        var exceptions = ColumnStamps()
        change.columns.removeAll { !judged.slots.contains($0.slot) }
        for column in change.columns {
            guard let stamp = theirs.stamp(of: column.slot), stamp != inserted else { continue }
            exceptions[column.slot] = stamp
        }
        // The columns are no longer all columns of the row.
        change.shape = nil
        if let row { change.localID = row }
        change.state = RowState(
            clocks: RowClocks(inserted: inserted, deleted: deleted, exceptions: exceptions),
            unseen: .all(of: context.node), isRepair: true)
        return change
    }

    // MARK: Making way for rows

    /// - Returns: the integer key of the row, if it was lost.
    private func prepare(_ judged: Judged) throws -> Int64? {
        let table = judged.received.change.table
        let identity = judged.received.change.identity
        for slot in judged.tied {
            guard let stamp = judged.mine?.clocks.stamp(of: slot) else { continue }
            try lower(table, identity, slot, stamp)
        }
        guard judged.takesExistence, try table.find(db, identity) == nil else { return nil }
        return try table.forgetLost(db, identity)
    }

    /// Makes the local value lose, by setting its stamp a moment earlier.
    private func lower(_ table: EntityTable, _ identity: StableID, _ slot: Int, _ stamp: Stamp) throws {
        // Stores of older versions may have a stamp of time zero.
        let earlier =
            stamp.time == .zero
            ? .zero : Stamp(time: HybridTime(rawValue: stamp.time.rawValue - 1), node: stamp.node)
        if let found = try table.find(db, identity), found.clocks.stamp(of: slot) == stamp {
            var exceptions = found.clocks.exceptions
            exceptions[slot] = earlier
            let clocks = RowClocks(
                inserted: found.clocks.inserted, deleted: found.clocks.deleted, exceptions: exceptions)
            return try table.saveClocks(db, row: found.address.row, identity, clocks)
        }
        try PendingRows(db: db, context: context).restamp(table, identity, slot: slot, earlier)
    }

    /// Marks differences as open if they could not be repaired, for whatever reason the table has.
    private func review(_ found: inout [FoundDivergence], _ received: [AntiEntropyRows.ReceivedRow], _ applier: Applier)
        throws
    {
        let byName = Dictionary(
            received.map { (RowIdentity(entity: $0.change.entity.id, identity: $0.change.identity), $0) },
            uniquingKeysWith: { a, _ in a })
        for index in found.indices where found[index].outcome == .repaired {
            let one = found[index]
            guard let received = byName[RowIdentity(entity: one.entity.id, identity: one.identity)] else { continue }
            let mine = try applier.record(received.change.table, one.identity)
            let left = RowComparison(mine: mine, theirs: received.record, columns: one.entity.comparedColumns)
            let isLeft =
                one.slot.map { left.newer.contains($0) || left.tied.contains($0) } ?? left.isExistenceNewer
            if isLeft { found[index].outcome = .open }
        }
    }
}

extension AntiEntropyMerge {
    /// Merges the rows of a check that this store lacks.
    ///
    /// - Parameter needsAll: false to judge a register as soon as this store has all of its author's transactions that
    ///   the sender has. If an author continues under a new node ID, its transactions count as those of the new ID, so
    ///   its registers may then wrongly count as missing.
    /// - Returns: what was missing. Nil if this node doesn't have all transactions yet that the sender had, or has
    ///   loaded a part of a snapshot.
    static func merge(
        _ message: AntiEntropyMessage, into engine: SyncEngine, present: Set<NodeID>, needsAll: Bool = true
    ) throws -> [FoundDivergence]? {
        let session = engine.session
        let header = message.wire.header
        let ahead = HybridTime(rawValue: header.hlc).milliseconds - session.now()
        guard ahead <= session.maxClockSkew else {
            throw StoreError(
                .invalidArgument, "The check of \(header.makerName) is \(ahead / 1000) s ahead of this node's clock.",
                hint: "Correct the clock that is wrong.")
        }
        return try session.transaction { db, context in
            let vector = try VersionVector(context.origins(db))
            guard try AntiEntropyReader.isReady(db), !needsAll || vector.covers(message.vector) else { return nil }
            let held = try RecordReader(db, context).tablesWithPendingChanges()
            let applier = Applier(db, context)
            let knowsLess = try context.knowsLess(db, header)
            let received = try AntiEntropyRows(
                header, shapes: AntiEntropyRows.shapes(message.wire), held: held, context
            ).read(
                message.wire.contents
            ).filter { try !applier.hasCollected($0.change, knowsLess: knowsLess, seeksLost: true) }
            return try AntiEntropyMerge(
                engine: engine, db: db, context: context, header: header, sender: message.sender,
                isCovered: { vector.covers(message.vector, of: $0) }, present: present
            ).merge(received)
        }
    }
}
