package import GRDB
import MartletCore
package import MartletStore

/// Tells which integer key a row had at the time of the change that is being stamped: tables hold the present state,
/// and keys may have changed since.
///
/// Kept between runs of the ``Enqueuer``, so that a long log is read only once. Confined to the engine's connection, in
/// whose transaction only the engine writes to the log.
package final class KeyChanges {
    private let statement: StatementCache
    /// Everything before this is stamped, and nobody asks for it any more.
    private var begin: Int64?
    /// The log is known up to here.
    private var end: Int64 = 0
    /// ``newest`` covers the log up to here.
    private var moves: Int64 = 0
    /// By entity, the last change of a row's key.
    private var newest: [Int64: Int64] = [:]
    private var events: [Int64: KeyEvents] = [:]
    /// The displacement that follows the updates, which begin at the first of these log IDs.
    private var displacement: (first: Int64, Displacement)?

    /// A statement that gave a row the key of rows that it deleted.
    private struct Displacement {
        /// From where the search began, there are only updates before this log ID.
        var at: Int64
        var entity: Int64
        var deleted: Set<Int64> = []
        var old: Int64?
        var new: Int64?
    }

    package init(_ statement: StatementCache) { self.statement = statement }

    /// Records where the log ends, before a run of the ``Enqueuer``.
    package func follow(_ db: Database, after stamped: Int64) throws {
        if begin == nil { (begin, moves) = (stamped, stamped) }
        let last = try statement(db, "SELECT max(id) FROM \(InternalName.log)").first { $0.optionalInteger(0) }
        let now = (last ?? nil) ?? 0
        if now != end { displacement = nil }
        end = now
    }

    /// Drops what is known, since everything is stamped.
    package func forget() {
        guard begin != nil else { return }
        (begin, end, moves, newest, events, displacement) = (nil, 0, 0, [:], [:], nil)
    }

    /// Returns the key that a row had at the time of a change, from the key that it has now.
    ///
    /// - Returns: nil if the row was inserted after the change.
    package func key(_ db: Database, of row: Int64, in entity: Entity, at change: Int64) throws -> Int64? {
        guard try areThere(db, entity, after: change) else { return row }
        return try formerKey(events(db, entity), of: row, before: .max, at: change)
    }

    /// Returns the key of the row that takes this one, which no row has, later in the transaction of the change.
    ///
    /// What a move triggers is in the log before the move: foreign-key actions, and users' triggers. They change the
    /// row under the key that it takes.
    ///
    /// - Returns: nil if no row takes it, or if another row has it.
    package func arrivingKey(_ db: Database, at row: Int64, in entity: Entity, after change: Int64) throws -> Int64? {
        guard try areThere(db, entity, after: change) else { return nil }
        let events = try events(db, entity)
        guard let arrival = events.events(of: row, after: change).first, case .arrived = arrival.kind else {
            return nil
        }
        let end = try statement(
            db, "SELECT 1 FROM \(InternalName.log) WHERE id > ?1 AND id < ?2 AND e = 0 LIMIT 1")
        end.bind(1, change)
        end.bind(2, arrival.id)
        guard try end.first({ _ in true }) == nil else { return nil }
        return formerKey(events, of: row, before: arrival.id + 1, at: change)
    }

    /// Returns the key that a row had at the time of a change, from the key that it has before a later log ID.
    private func formerKey(_ events: KeyEvents, of row: Int64, before end: Int64, at change: Int64) -> Int64? {
        var (row, end) = (row, end)
        while let last = events.events(of: row, after: change, before: end).last(where: \.isBeginning) {
            guard case .arrived(let old) = last.kind else { return nil }
            (row, end) = (old, last.id)
        }
        return row
    }

    /// Returns the key that a row has now, from the key that it had then.
    ///
    /// - Returns: nil if the row is gone by now.
    package func currentKey(_ db: Database, of row: Int64, in entity: Entity, after change: Int64) throws -> Int64? {
        guard try areThere(db, entity, after: change) else { return row }
        let events = try events(db, entity)
        var row = row
        var begin = change
        while true {
            let first = events.events(of: row, after: begin).first { event in
                if case .arrived = event.kind { false } else { true }
            }
            guard let first else { return row }
            guard case .left(let new) = first.kind else { return nil }
            row = new
            begin = first.id + 1
        }
    }

    /// Returns the keys that the row had before, up to this change, which leaves it with this key. Searches only
    /// changes that are not stamped yet.
    package func formerKeys(_ db: Database, of row: Int64, in entity: Entity, through change: Int64) throws -> [Int64] {
        guard try areThere(db, entity, after: begin ?? 0) else { return [] }
        let events = try events(db, entity)
        var former: [Int64] = []
        var (row, end) = (row, change + 1)
        while let came = events.events(of: row, after: 0, before: end).last(where: \.isBeginning),
            case .arrived(let old) = came.kind
        {
            former.append(old)
            (row, end) = (old, came.id)
        }
        return former
    }

    /// Returns the first row of the log after this change that shows the identity of a row with this key, before or
    /// after a change.
    package func nextImage(_ db: Database, of row: Int64, in entity: Entity, after change: Int64) throws -> Int64? {
        try events(db, entity).image(of: row, after: change)
    }

    /// Returns the key of the row that takes this one from another row (`UPDATE OR REPLACE`), in the statement that
    /// cascaded the change. The log has the cascaded changes first, then the displaced rows as deletes, and then the
    /// row that moved.
    ///
    /// - Returns: nil if another statement made the change, or if the key was taken from no row.
    package func displacingKey(_ db: Database, of row: Int64, in entity: Entity, after change: Int64) throws -> Int64? {
        guard try areThere(db, entity, after: change) else { return nil }
        let found = try displacement(db, after: change)
        guard let found, found.entity == entity.id, found.new == row, let old = found.old, old != row,
            found.deleted.contains(row)
        else { return nil }
        // Another row had the key when the change was made.
        let hasMoved = try events(db, entity).events(of: row, after: change, before: found.at).contains { event in
            if case .left = event.kind { true } else { false }
        }
        return hasMoved ? nil : old
    }

    private func displacement(_ db: Database, after change: Int64) throws -> Displacement? {
        if let (first, found) = displacement, change >= first, change < found.at {
            return found.old == nil ? nil : found
        }
        let find = try statement(
            db,
            """
            SELECT id, e FROM \(InternalName.log) WHERE id > ?1
            AND (e = 0 OR k NOT IN (\(ChangeKind.update.code), \(ChangeKind.Mark.before))) ORDER BY id LIMIT 1
            """)
        find.bind(1, change)
        let begin = try find.first { ($0.integer(0), $0.integer(1)) }
        var found = Displacement(at: begin?.0 ?? .max, entity: begin?.1 ?? 0)
        let read = try statement(
            db, "SELECT e, k, r FROM \(InternalName.log) WHERE id >= ?1 ORDER BY id")
        read.bind(1, found.at)
        defer { read.reset() }
        while try found.entity != 0 && read.step(), read.integer(0) == found.entity, let row = read.optionalInteger(2) {
            let kind = read.integer(1)
            if found.old == nil, kind == ChangeKind.delete.code {
                found.deleted.insert(row)
            } else if found.old == nil, kind == ChangeKind.Mark.before {
                found.old = row
            } else {
                if found.old != nil, kind == ChangeKind.update.code { found.new = row }
                break
            }
        }
        displacement = (change, found)
        return found.old == nil ? nil : found
    }

    private func areThere(_ db: Database, _ entity: Entity, after change: Int64) throws -> Bool {
        guard entity.isKeyedByInteger else { return false }
        if moves < end {
            let find = try statement(
                db,
                """
                SELECT b.id, b.e FROM \(InternalName.log) AS b CROSS JOIN \(InternalName.log) AS u ON u.id = b.id + 1
                WHERE b.id > ?1 AND b.id <= ?2 AND b.e <> 0 AND b.k = \(ChangeKind.Mark.before) AND u.r <> b.r
                """)
            find.bind(1, moves)
            find.bind(2, end)
            while try find.step() {
                newest[find.integer(1)] = max(newest[find.integer(1)] ?? 0, find.integer(0))
            }
            moves = end
        }
        return newest[entity.id] ?? 0 > change
    }

    private func events(_ db: Database, _ entity: Entity) throws -> KeyEvents {
        var known = events[entity.id] ?? KeyEvents(entity.id, after: begin ?? 0)
        // Not a second reference while the array grows: that would copy everything.
        events[entity.id] = nil
        try known.read(db, through: end)
        events[entity.id] = known
        return known
    }
}
