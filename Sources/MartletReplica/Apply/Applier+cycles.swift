import GRDB
package import MartletCore
import MartletMerge
import MartletStore

/// Cycles of references: rows that can't be in their tables without each other, because each refers to another one in a
/// column that may not be null, or that a `CHECK` requires. Their author had all of them, and so has every node that
/// received all of them.
extension Applier {
    /// A cycle of more rows than this stays pending, and so does one that has failed this often in one transaction.
    private static let most = (rows: 1000, attempts: 3)

    package struct Member {
        package var name: RowIdentity
        package var table: EntityTable
        package var pendingRow: PendingRow
        package var reason: ParkReason

        package var values: [(Int, Value)] { pendingRow.values(in: table) }
    }

    /// Inserts all rows of the cycle that contains this row, if there is such a cycle, and no other row holds a unique
    /// key of theirs. If rows that it needs lost a unique key, see ``contest(_:)``.
    package func closeCycle(_ name: RowIdentity) throws {
        guard cycleAttempts[name, default: 0] < Self.most.attempts else { return }
        var search = Search()
        guard let members = try needed(for: name, &search) else { return }
        cycleAttempts[name, default: 0] += 1
        if try insert(members) { return }
        if search.hasFoundLosers {
            // A constraint may require only other rows than those.
            var narrower = Search(includesLosers: false)
            if let members = try needed(for: name, &narrower), try insert(members) { return }
        }
        // A row that waits for this one may have the newer claim.
        let (table, pendingRow) = (members[0].table, members[0].pendingRow)
        blocked += try rowsWaiting(for: name.identity, of: table, pendingRow).filter {
            cycleAttempts[$0, default: 0] < Self.most.attempts
        }
    }

    /// - Returns: false if rows among them lost a unique key, and did not get it back.
    private func insert(_ members: [Member]) throws -> Bool {
        let isCycle = members.allSatisfy { $0.reason == .missingTarget }
        // A row without unique keys displaces no other row.
        guard isCycle || !members[0].table.uniqueSlots.isEmpty else { return false }
        try assume(members)
        defer { assumed = Assumed() }
        guard isCycle else { return try contest(members) }
        if try members.filter({ try !fits($0) }).isEmpty, try !excludeEachOther(members) { try bringIn(members) }
        return true
    }

    /// Returns true if two of the rows claim the same unique key, so that the rows can't be in their tables together.
    private func excludeEachOther(_ members: [Member]) throws -> Bool {
        guard members.contains(where: { !$0.table.entity.uniqueKeys.isEmpty }) else { return false }
        var isExcluded = false
        func look() throws {
            for member in members {
                for rival in try rivals(of: member) ?? [] {
                    if let address = rival.address { try member.table.delete(db, address) }
                    if let rowid = rival.rowid { try member.table.delete(db, rowid: rowid) }
                }
            }
            for member in members where !isExcluded {
                let (table, row) = (member.table, assumed.rows[member.name])
                guard
                    let resolved = try resolve(
                        table, member.name.identity, member.values, isFinal: true, newRow: row)
                else { continue }
                do {
                    _ = try table.insert(db, row: row, resolved.values)
                } catch let error as StoreError where error.refusesRow {
                    isExcluded = error.isUniqueKey
                }
            }
        }
        try db.inSavepoint {
            if let derived = context.derived { try derived.without(look) } else { try look() }
            return .rollback
        }
        return isExcluded
    }

    /// Inserts rows that were assumed to be in place (``assume(_:)``).
    package func bringIn(_ members: [Member]) throws {
        for member in members {
            _ = try materialize(member.table, member.name.identity, member.pendingRow, isFinal: true)
        }
        // Rows that referred to a row that could not be inserted become pending again.
        for member in members where try member.table.find(db, member.name.identity) == nil {
            orphans.append(
                Orphan(
                    table: member.table, identity: member.name.identity, row: assumed.rows[member.name],
                    values: member.pendingRow.values))
        }
        assumed = Assumed()
        // Only SQLite knows which values a program's own collation, or an affinity, treats as equal.
        for member in members {
            for key in context.valueKeys.byEntity[member.table.entity.id] ?? [] {
                let claimed = try local(key.slots.map { member.pendingRow.values[$0] ?? .null })
                if let claimed, !claimed.contains(.null) { try detach(key, from: claimed) }
            }
        }
    }

    /// A pending row that may be part of a cycle.
    private struct Candidate {
        var member: Member
        /// For each missing row that it can't do without, the pending rows that could be that one.
        var needs: [[RowIdentity]]
        /// The same for missing rows of which a constraint of its table may require some. Only SQLite knows which.
        var optionalNeeds: [[RowIdentity]]

        /// Nil if no pending row could be one that it can't do without.
        func rows(_ isCandidate: (RowIdentity) -> Bool) -> [RowIdentity]? {
            var rows: [RowIdentity] = []
            for need in needs {
                guard let row = need.first(where: isCandidate) else { return nil }
                rows.append(row)
            }
            return rows + optionalNeeds.compactMap { $0.first(where: isCandidate) }
        }
    }

    /// Returns the row, and pending rows that wait for their target or for a unique key, so that each has what it needs
    /// among them or in its table. Nil if there are no such rows.
    ///
    /// More than one pending row may have the values that a foreign key refers to, and some of them may wait for
    /// something that never comes. All are considered: the outcome must not depend on which of them arrived first.
    private func needed(for name: RowIdentity, _ search: inout Search) throws -> [Member]? {
        var candidates = try candidates(for: name, &search)
        guard candidates[name] != nil else { return nil }
        var members: [Member] = []
        var seen: Set<RowIdentity> = [name]
        var open = [name]
        while let next = open.popLast() {
            guard let candidate = candidates.removeValue(forKey: next) else { continue }
            members.append(candidate.member)
            guard let rows = candidate.rows({ seen.contains($0) || candidates[$0] != nil }) else { return nil }
            // Alone, the row would only be refused again.
            if rows.isEmpty, next == name { return nil }
            for row in rows where seen.insert(row).inserted { open.append(row) }
        }
        return members
    }

    /// Returns the pending rows that the row needs, directly or through others, without those that can't have what they
    /// need.
    private func candidates(for name: RowIdentity, _ search: inout Search) throws -> [RowIdentity: Candidate] {
        var candidates: [RowIdentity: Candidate] = [:]
        var users: [RowIdentity: [RowIdentity]] = [:]
        var lost: [RowIdentity] = []
        var seen: Set<RowIdentity> = [name]
        var open = [name]
        while let next = open.popLast() {
            guard candidates.count < Self.most.rows, let candidate = try candidate(next, &search) else {
                lost.append(next)
                continue
            }
            candidates[next] = candidate
            for row in Set(candidate.needs.joined()) { users[row, default: []].append(next) }
            let wanted = (candidate.needs + candidate.optionalNeeds).joined()
            for row in wanted where seen.insert(row).inserted { open.append(row) }
        }
        while let row = lost.popLast() {
            for user in users[row] ?? [] {
                guard let needs = candidates[user]?.needs,
                    needs.contains(where: { rows in rows.allSatisfy { candidates[$0] == nil } })
                else { continue }
                candidates[user] = nil
                lost.append(user)
            }
        }
        return candidates
    }

    /// Nil if the row is not pending for want of other rows, or needs a row that is not pending.
    private func candidate(_ name: RowIdentity, _ search: inout Search) throws -> Candidate? {
        guard let entity = context.catalog[name.entity] else { return nil }
        let table = context.table(entity)
        guard let pendingRow = try pendingRows.load(table, name.identity), pendingRow.clocks.isAlive,
            let reason = try pendingRows.reason(pendingRow), reason == .missingTarget || reason == .unique,
            !name.identity.hasNoIdentity, pendingRow.values.values.allSatisfy(isKnown),
            let needs = try needs(of: pendingRow, table, &search)
        else { return nil }
        let member = Member(name: name, table: table, pendingRow: pendingRow, reason: reason)
        // A row that has all that it can't do without was refused while other references were null.
        let isRefused = reason == .missingTarget && (needs.isEmpty || refused.contains(name))
        let optionalNeeds = isRefused ? try optionalNeeds(of: pendingRow, name, table, &search) : []
        return Candidate(member: member, needs: needs, optionalNeeds: optionalNeeds)
    }

    /// Returns the missing rows to which the row refers in columns that may be null, like ``needs(of:_:_:)``.
    private func optionalNeeds(
        of pendingRow: PendingRow, _ name: RowIdentity, _ table: EntityTable, _ search: inout Search
    ) throws -> [[RowIdentity]] {
        var optionalNeeds: [[RowIdentity]] = []
        for column in table.entity.columns where table.entity.mayWait(column) {
            guard case .reference(let reference)? = pendingRow.values[column.slot],
                let target = context.catalog[reference.entity],
                try context.resolver.row(db, target, reference.identity) == nil
            else { continue }
            optionalNeeds.append([RowIdentity(entity: target.id, identity: reference.identity)])
        }
        for key in context.valueKeys.byEntity[table.entity.id] ?? [] where key.yielding != nil {
            guard let claimed = try local(key.slots.map { pendingRow.values[$0] ?? .null }), !claimed.contains(.null),
                try !hasTarget(key, claimed)
            else { continue }
            optionalNeeds.append(try pendingTargets(of: key, claimed, &search))
        }
        return try optionalNeeds.map { rows in
            try rows.filter { row in
                guard row != name, let table = context.catalog[row.entity].map(context.table),
                    let pendingRow = try pendingRows.load(table, row.identity)
                else { return false }
                let reason = try pendingRows.reason(pendingRow)
                if reason == .unique { search.hasFoundLosers = true }
                return reason == .missingTarget || (reason == .unique && search.includesLosers)
            }
        }
    }

    /// Returns the missing rows that the row can't do without: for each of them, the pending rows that could be it,
    /// most likely ones first. Nil if no pending row could be one of them.
    private func needs(
        of pendingRow: PendingRow, _ table: EntityTable, _ search: inout Search
    ) throws -> [[RowIdentity]]? {
        var needs: [[RowIdentity]] = []
        for column in table.entity.columns where !table.entity.mayWait(column) {
            guard case .reference(let reference)? = pendingRow.values[column.slot] else { continue }
            guard let target = context.catalog[reference.entity] else { return nil }
            if try context.resolver.row(db, target, reference.identity) != nil { continue }
            needs.append([RowIdentity(entity: target.id, identity: reference.identity)])
        }
        for key in context.valueKeys.byEntity[table.entity.id] ?? [] where key.yielding == nil {
            // If the key contains a reference to a missing row, that row is in the list already.
            guard let claimed = try local(key.slots.map { pendingRow.values[$0] ?? .null }), !claimed.contains(.null)
            else { continue }
            if try hasTarget(key, claimed) { continue }
            let found = try pendingTargets(of: key, claimed, &search)
            guard !found.isEmpty else { return nil }
            needs.append(found)
        }
        return needs
    }

    /// A search for the pending rows that a row needs.
    private struct Search {
        struct Columns: Hashable {
            var entity: Int64
            var slots: [Int?]
        }

        struct Row {
            var name: RowIdentity
            var reason: ParkReason
            var values: [Value]
        }

        /// Whether rows that lost a unique key count where only a constraint may require them.
        var includesLosers = true
        /// True if there are such rows.
        var hasFoundLosers = false
        /// The columns in which pending rows were read: once for each search.
        var read: Set<Columns> = []
        /// Pending rows with the values of such columns, by the wait key of rows that lack them.
        var rows: [[UInt8]: [Row]] = [:]
    }

    /// Returns the pending rows to which these values refer. Those that lost a unique key come last, and within both
    /// groups, the order depends on stamps alone.
    private func pendingTargets(
        of key: ValueKey, _ claimed: [Value], _ search: inout Search
    ) throws -> [RowIdentity] {
        if search.read.insert(.init(entity: key.target.id, slots: key.targetSlots)).inserted {
            let table = context.table(key.target)
            for reason in [ParkReason.missingTarget, .unique] {
                for name in try pendingRows.waiting(key.target.id, reason) {
                    guard let other = try pendingRows.load(table, name.identity),
                        let values = try local(key.targetValues(other.values, nil)), !values.contains(.null)
                    else { continue }
                    let row = Search.Row(name: name, reason: reason, values: values)
                    search.rows[key.wait(for: values), default: []].append(row)
                }
            }
        }
        let found = (search.rows[key.wait(for: claimed)] ?? []).filter { key.mayTake(claimed, for: $0.values) }
        return try [ParkReason.missingTarget, .unique].flatMap { reason in
            try strongestFirst(found.filter { $0.reason == reason }.map(\.name))
        }
    }

    /// The rows that are assumed to be in place while a cycle is inserted.
    package struct Assumed {
        /// The integer keys that the rows will have.
        package var rows: [RowIdentity: Int64] = [:]
        /// The values that the rows will have in keys that others refer to by value.
        package var targets: [(key: ValueKey, values: [Value])] = []

        package func hasTarget(_ key: ValueKey, _ values: [Value]) -> Bool {
            targets.contains { $0.key.refersToSameColumns(as: key) && key.mayTake(values, for: $0.values) }
        }
    }

    private func assume(_ members: [Member]) throws {
        for member in members {
            let entity = member.table.entity
            if entity.localKey != nil {
                let taken = Set(assumed.rows.filter { $0.key.entity == entity.id }.values)
                assumed.rows[member.name] = try freeRow(
                    member.table, member.name.identity, wanted: member.pendingRow.localID, taken: taken)
            }
        }
        for member in members {
            for key in context.valueKeys.byTarget[member.table.entity.id] ?? [] {
                let values = try local(key.targetValues(member.pendingRow.values, assumed.rows[member.name]))
                if let values, !values.contains(.null) { assumed.targets.append((key, values)) }
            }
        }
    }

    /// Returns the values as this file stores them. Nil if one refers to a row that is neither in its table nor assumed
    /// to be.
    private func local(_ values: [Value]) throws -> [Value]? {
        var local = values
        for (index, value) in values.enumerated() {
            guard case .reference(let reference) = value else { continue }
            guard let target = context.catalog[reference.entity] else { return nil }
            let row =
                try context.resolver.row(db, target, reference.identity)
                ?? assumed.rows[RowIdentity(entity: target.id, identity: reference.identity)]
            guard let row else { return nil }
            local[index] = .integer(row)
        }
        return local
    }

    /// Returns the rows that hold a unique key of this row. Nil if the row can't be inserted for another reason.
    package func rivals(of member: Member) throws -> [Rival]? {
        let (table, identity) = (member.table, member.name.identity)
        let row = assumed.rows[member.name]
        guard let resolved = try resolve(table, identity, member.values, isFinal: true, newRow: row),
            resolved.blocked == nil
        else { return nil }
        return try rivals(table, identity, resolved.values, nil)
    }

    /// Returns false for a row that would lose a unique key: it waits for the key.
    private func fits(_ member: Member) throws -> Bool {
        let (table, identity) = (member.table, member.name.identity)
        guard let rivals = try rivals(of: member) else { return false }
        guard let winner = rivals.first(where: { !wins(table, member.pendingRow.clocks, identity, over: $0) }) else {
            return true
        }
        try park(table, identity, member.pendingRow, behind: winner.identity, wait: WaitKey.anything)
        return false
    }
}
