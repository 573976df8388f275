import Foundation
import GRDB
import MartletStore

/// Rows that have taken over the integer key of one that is gone, until their transaction ends: what referred to that
/// one refers to the other one here. They outlive a commit that ends in between.
///
/// Confined to the engine's connection. Made anew after a rollback, with the context that it belongs to.
final class ReusedKeys {
    struct Row {
        /// The change that took over the key.
        var change: LogChange
        var key: Int64
        var old: StableID
        var new: StableID
        /// When the key had not been taken over yet.
        var before: HybridTime
        /// True of the last one that takes over this key in the transaction: that is what others refer to in the end.
        var isLast = true
    }

    /// What no commit has written down yet.
    private var rows: [Row] = []
    private let log: LogReader
    /// The first change of those that the store has. Nil where it has none.
    private(set) var firstKept: Int64?

    init(_ db: Database, _ log: LogReader) throws {
        self.log = log
        firstKept = try Int64.fetchOne(db, sql: "SELECT min(change) FROM _martlet_reused")
    }

    func add(_ row: Row) { rows.append(row) }

    /// Writes down those that wait when a commit ends in the middle of their transaction.
    func keep(_ db: Database) throws {
        guard !rows.isEmpty else { return }
        let save = try PreparedStatement(
            db, "INSERT INTO _martlet_reused(entity, key, change, old, new, before) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
        for row in rows {
            save.bind(1, row.change.entity.id)
            save.bind(2, row.key)
            save.bind(3, row.change.id)
            save.bind(4, blob: row.old.bytes)
            save.bind(5, blob: row.new.bytes)
            save.bind(6, Int64(bitPattern: row.before.rawValue))
            try save.run()
        }
        firstKept = firstKept ?? rows.first?.change.id
        rows = []
    }

    /// Takes the first of them, in the order in which they took over their keys, at the end of their transaction.
    ///
    /// - Parameter limit: of how many rows the store has.
    func take(_ db: Database, limit: Int) throws -> (rows: [Row], hasMore: Bool) {
        guard firstKept != nil else {
            var taken = rows
            rows = []
            var later: Set<[Int64]> = []
            for index in taken.indices.reversed() {
                taken[index].isLast = later.insert([taken[index].change.entity.id, taken[index].key]).inserted
            }
            return (taken, false)
        }
        try keep(db)
        var taken: [Row] = []
        var last: Int64?
        let read = try PreparedStatement(
            db,
            """
            SELECT id, change, key, old, new, before, EXISTS (
              SELECT 1 FROM _martlet_reused AS later WHERE later.entity = r.entity AND later.key = r.key AND later.id > r.id)
            FROM _martlet_reused AS r ORDER BY id LIMIT ?1
            """)
        read.bind(1, Int64(limit))
        while try read.step() {
            last = read.integer(0)
            let change = read.integer(1)
            try log.forEach(from: change, to: change + 1) { change in
                taken.append(
                    Row(
                        change: change, key: read.integer(2), old: StableID(bytes: read.blob(3)),
                        new: StableID(bytes: read.blob(4)),
                        before: HybridTime(rawValue: UInt64(bitPattern: read.integer(5))), isLast: read.integer(6) == 0)
                )
            }
        }
        try db.execute(sql: "DELETE FROM _martlet_reused WHERE id <= ?", arguments: [last])
        firstKept = try Int64.fetchOne(db, sql: "SELECT min(change) FROM _martlet_reused")
        return (taken, firstKept != nil)
    }

    /// The rows by key, each key's in the order in which they took it over. A key whose row came from another key
    /// follows that one: until then, names there say that row's.
    static func inOrder(_ rows: [Row]) -> [[Row]] {
        struct Key: Hashable {
            var entity: Int64
            var key: Int64
        }
        var places: [Key: Int] = [:]
        var groups: [[Row]] = []
        for row in rows {
            let key = Key(entity: row.change.entity.id, key: row.key)
            if let place = places[key] {
                groups[place].append(row)
            } else {
                places[key] = groups.count
                groups.append([row])
            }
        }
        var giving: [RowName: [Int]] = [:]
        for (place, group) in groups.enumerated() {
            for row in group {
                giving[RowName(entity: row.change.entity.id, identity: row.old), default: []].append(place)
            }
        }
        var order: [[Row]] = []
        var (isSeen, isDone) = (groups.map { _ in false }, groups.map { _ in false })
        var stack = Array(groups.indices.reversed())
        while let place = stack.last {
            if isSeen[place] {
                stack.removeLast()
                if !isDone[place] { order.append(groups[place]) }
                isDone[place] = true
                continue
            }
            isSeen[place] = true
            // Where rows have changed places, there is no first one.
            for row in groups[place].suffix(1) {
                let name = RowName(entity: row.change.entity.id, identity: row.new)
                stack += (giving[name] ?? []).filter { !isSeen[$0] }
            }
        }
        return order
    }
}
