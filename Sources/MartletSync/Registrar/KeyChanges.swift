import GRDB
import MartletStore

/// Which integer keys rows had when a change was made that is registered now: tables hold what is true now, and keys may have
/// changed since.
///
/// One for a run of the registrar, in whose transaction the log does not grow.
final class KeyChanges {
    private let context: EngineContext
    /// By entity, the last change of a row's key.
    private var newest: [Int64: Int64] = [:]
    /// From the first of these places of the log to the last there are only updates.
    private var updates: (first: Int64, last: Int64) = (0, 0)

    init(_ context: EngineContext) { self.context = context }

    /// The key that the row had which has this one now.
    ///
    /// - Returns: nil where the row came after the change.
    func key(_ db: Database, of row: Int64, in entity: Entity, at change: Int64) throws -> Int64? {
        guard try areThere(db, entity, after: change) else { return row }
        let find = try context.statement(
            db,
            """
            SELECT id, k, (SELECT r FROM \(InternalName.log) AS b WHERE b.id = a.id - 1 AND b.k = \(ChangeKind.Mark.before))
            FROM \(InternalName.log) AS a WHERE id > ?1 AND id < ?2 AND e = ?3 AND r = ?4
            AND k IN (\(ChangeKind.insert.code), \(ChangeKind.update.code)) ORDER BY id DESC LIMIT 1
            """)
        var row = row
        var end = Int64.max
        while true {
            find.bind(1, change)
            find.bind(2, end)
            find.bind(3, entity.id)
            find.bind(4, row)
            guard let (id, kind, old) = try find.first({ ($0.integer(0), $0.integer(1), $0.optionalInteger(2)) })
            else { return row }
            if kind == ChangeKind.insert.code { return nil }
            row = old ?? row
            end = id
        }
    }

    /// The key that the row has now which had this one.
    ///
    /// - Returns: nil where the row is gone by now.
    func currentKey(_ db: Database, of row: Int64, in entity: Entity, after change: Int64) throws -> Int64? {
        guard try areThere(db, entity, after: change) else { return row }
        let find = try context.statement(
            db,
            """
            SELECT id, k, (SELECT r FROM \(InternalName.log) AS u WHERE u.id = a.id + 1) FROM \(InternalName.log) AS a
            WHERE id > ?1 AND e = ?2 AND r = ?3
            AND k IN (\(ChangeKind.insert.code), \(ChangeKind.delete.code), \(ChangeKind.Mark.before)) ORDER BY id LIMIT 1
            """)
        var row = row
        var begin = change
        while true {
            find.bind(1, begin)
            find.bind(2, entity.id)
            find.bind(3, row)
            guard let (id, kind, new) = try find.first({ ($0.integer(0), $0.integer(1), $0.optionalInteger(2)) })
            else { return row }
            if kind != ChangeKind.Mark.before { return nil }
            row = new ?? row
            begin = id + 1
        }
    }

    /// The key of the row that takes this one from another row (`UPDATE OR REPLACE`), in the statement by which the change was
    /// cascaded: the log has what was cascaded first, then the rows that were displaced as deleted, and then the row that moved.
    ///
    /// - Returns: nil where the change was made by another statement, or the key is taken from no row.
    func displacingKey(_ db: Database, of row: Int64, in entity: Entity, after change: Int64) throws -> Int64? {
        guard try areThere(db, entity, after: change) else { return nil }
        if change < updates.first || change >= updates.last {
            let find = try context.statement(
                db,
                """
                SELECT id FROM \(InternalName.log) WHERE id > ?1
                AND (e = 0 OR k NOT IN (\(ChangeKind.update.code), \(ChangeKind.Mark.before))) ORDER BY id LIMIT 1
                """)
            find.bind(1, change)
            updates = (change, try find.first { $0.integer(0) } ?? Int64.max)
        }
        guard updates.last < Int64.max else { return nil }
        let read = try context.statement(
            db, "SELECT e, k, r FROM \(InternalName.log) WHERE id >= ?1 ORDER BY id")
        read.bind(1, updates.last)
        defer { read.reset() }
        var isDisplaced = false
        var old: Int64?
        while try read.step(), read.integer(0) == entity.id {
            switch (old, read.integer(1)) {
            case (nil, ChangeKind.delete.code):
                isDisplaced = isDisplaced || read.integer(2) == row
                continue
            case (nil, ChangeKind.Mark.before) where isDisplaced:
                old = read.integer(2)
                continue
            case (let old?, ChangeKind.update.code) where read.integer(2) == row && old != row:
                return try hasMoved(db, row, in: entity, after: change, before: updates.last) ? nil : old
            default: return nil
            }
        }
        return nil
    }

    /// True where another row had the key when the change was made.
    private func hasMoved(
        _ db: Database, _ row: Int64, in entity: Entity, after change: Int64, before end: Int64
    ) throws -> Bool {
        let find = try context.statement(
            db,
            "SELECT 1 FROM \(InternalName.log) WHERE id > ?1 AND id < ?2 AND e = ?3 AND r = ?4 AND k = \(ChangeKind.Mark.before)"
        )
        find.bind(1, change)
        find.bind(2, end)
        find.bind(3, entity.id)
        find.bind(4, row)
        return try find.first { _ in true } ?? false
    }

    private func areThere(_ db: Database, _ entity: Entity, after change: Int64) throws -> Bool {
        guard entity.isKeyedByInteger else { return false }
        if let known = newest[entity.id] { return known > change }
        let find = try context.statement(
            db,
            """
            SELECT max(b.id) FROM \(InternalName.log) AS b JOIN \(InternalName.log) AS u ON u.id = b.id + 1
            WHERE b.id > ?1 AND b.e = ?2 AND b.k = \(ChangeKind.Mark.before) AND u.r <> b.r
            """)
        find.bind(1, change)
        find.bind(2, entity.id)
        let found = try find.first { $0.optionalInteger(0) ?? 0 } ?? 0
        newest[entity.id] = found
        return found > change
    }
}
