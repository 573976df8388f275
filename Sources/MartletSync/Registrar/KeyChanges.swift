import GRDB
import MartletStore

/// Which integer keys rows had when a change was made that is registered now: tables hold what is true now, and keys
/// may have changed since.
///
/// Kept from one run of the registrar to the next, so that a long log is read once and not for each of them. Confined
/// to the engine's connection, in whose transaction only the engine writes to the log.
final class KeyChanges {
    private unowned let context: EngineContext
    /// All before it is registered: nobody asks for it any more.
    private var begin: Int64?
    /// The log is known up to here.
    private var end: Int64 = 0
    /// Up to where ``newest`` goes.
    private var moves: Int64 = 0
    /// By entity, the last change of a row's key.
    private var newest: [Int64: Int64] = [:]
    private var events: [Int64: KeyEvents] = [:]
    /// What follows the updates from the first of these places of the log on.
    private var displacement: (first: Int64, Displacement)?

    /// A statement that gave a row the key of rows that it deleted.
    private struct Displacement {
        /// Before it there are only updates, from where it was looked for.
        var at: Int64
        var entity: Int64
        var deleted: Set<Int64> = []
        var old: Int64?
        var new: Int64?
    }

    init(_ context: EngineContext) { self.context = context }

    /// Takes note of how far the log goes, before a run of the registrar.
    func follow(_ db: Database, after registered: Int64) throws {
        if begin == nil { (begin, moves) = (registered, registered) }
        let last = try context.statement(db, "SELECT max(id) FROM \(InternalName.log)").first { $0.optionalInteger(0) }
        let now = (last ?? nil) ?? 0
        if now != end { displacement = nil }
        end = now
    }

    /// Lets go of what is known: all is registered.
    func forget() {
        guard begin != nil else { return }
        (begin, end, moves, newest, events, displacement) = (nil, 0, 0, [:], [:], nil)
    }

    /// The key that the row had which has this one now.
    ///
    /// - Returns: nil where the row came after the change.
    func key(_ db: Database, of row: Int64, in entity: Entity, at change: Int64) throws -> Int64? {
        guard try areThere(db, entity, after: change) else { return row }
        let events = try events(db, entity)
        var row = row
        var end = Int64.max
        while true {
            let last = events.events(of: row, after: change, before: end).last(where: \.isBeginning)
            guard let last else { return row }
            guard case .arrived(let old) = last.kind else { return nil }
            row = old
            end = last.id
        }
    }

    /// The key that the row has now which had this one.
    ///
    /// - Returns: nil where the row is gone by now.
    func currentKey(_ db: Database, of row: Int64, in entity: Entity, after change: Int64) throws -> Int64? {
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

    /// The keys that the row has left which this change leaves with this one. Only what is not registered yet is looked
    /// through.
    func formerKeys(_ db: Database, of row: Int64, in entity: Entity, through change: Int64) throws -> [Int64] {
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

    /// The first row of the log after this change that says what a row with this key was called, before or after a
    /// change.
    func nextImage(_ db: Database, of row: Int64, in entity: Entity, after change: Int64) throws -> Int64? {
        try events(db, entity).image(of: row, after: change)
    }

    /// The key of the row that takes this one from another row (`UPDATE OR REPLACE`), in the statement by which the
    /// change was cascaded: the log has what was cascaded first, then the rows that were displaced as deleted, and then
    /// the row that moved.
    ///
    /// - Returns: nil where the change was made by another statement, or the key is taken from no row.
    func displacingKey(_ db: Database, of row: Int64, in entity: Entity, after change: Int64) throws -> Int64? {
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
        let find = try context.statement(
            db,
            """
            SELECT id, e FROM \(InternalName.log) WHERE id > ?1
            AND (e = 0 OR k NOT IN (\(ChangeKind.update.code), \(ChangeKind.Mark.before))) ORDER BY id LIMIT 1
            """)
        find.bind(1, change)
        let begin = try find.first { ($0.integer(0), $0.integer(1)) }
        var found = Displacement(at: begin?.0 ?? .max, entity: begin?.1 ?? 0)
        let read = try context.statement(
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
            let find = try context.statement(
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
        // Not two of them while it grows: that would copy all.
        events[entity.id] = nil
        try known.read(db, through: end)
        events[entity.id] = known
        return known
    }
}
