import Foundation
package import GRDB
package import MartletCore
package import MartletStore

/// Rows that have taken over the integer key of a removed row, kept until their transaction ends: references to the
/// removed row are references to the new one here. They survive a commit that ends in between.
///
/// Confined to the engine's connection. Recreated after a rollback, together with its context.
package final class ReusedKeys {
    package struct Row {
        /// The change that took over the key.
        package var change: LogChange
        package var key: Int64
        package var old: StableID
        package var new: StableID
        /// The last clock reading before the key was taken over.
        package var before: HybridTime
        /// True for the last row that takes over this key in the transaction: references point to that one in the end.
        package var isLast = true
    }

    /// What no commit has stored yet.
    private var rows: [Row] = []
    private let log: LogReader
    /// The first change of the rows that are in the store. Nil if there are none.
    package private(set) var firstKept: Int64?

    package init(_ db: Database, _ log: LogReader) throws {
        self.log = log
        firstKept = try Int64.fetchOne(db, sql: "SELECT min(change) FROM _martlet_reused")
    }

    package var isEmpty: Bool { rows.isEmpty && firstKept == nil }

    package func add(_ row: Row) { rows.append(row) }

    /// Stores the waiting rows when a commit ends in the middle of their transaction.
    package func keep(_ db: Database) throws {
        guard !rows.isEmpty else { return }
        let save = try PreparedStatement(
            db, "INSERT INTO _martlet_reused(entity, key, change, old, new, before) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
        for row in rows {
            save.bind(1, row.change.entity.id)
            save.bind(2, row.key)
            save.bind(3, row.change.id)
            save.bind(4, blob: row.old.bytes)
            save.bind(5, blob: row.new.bytes)
            save.bind(6, row.before.stored)
            try save.run()
        }
        firstKept = firstKept ?? rows.first?.change.id
        rows = []
    }

    /// Takes the first rows, in the order in which they took over their keys, at the end of their transaction.
    ///
    /// - Parameter limit: how many rows to take of those in the store.
    package func take(_ db: Database, limit: Int) throws -> (rows: [Row], hasMore: Bool) {
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
              SELECT 1 FROM _martlet_reused AS later WHERE later.entity = r.entity AND later.key = r.key
              AND later.id > r.id)
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
                        before: HybridTime(stored: read.integer(5)), isLast: read.integer(6) == 0)
                )
            }
        }
        try db.execute(sql: "DELETE FROM _martlet_reused WHERE id <= ?", arguments: [last])
        firstKept = try Int64.fetchOne(db, sql: "SELECT min(change) FROM _martlet_reused")
        return (taken, firstKept != nil)
    }

    /// Returns the rows grouped by key, in the order in which they took it over. A key whose row came from another key
    /// follows that key: until then, IDs there contain that row's ID.
    package static func inOrder(_ rows: [Row]) -> [[Row]] {
        struct Key: Hashable {
            package var entity: Int64
            package var key: Int64
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
        var giving: [RowIdentity: [Int]] = [:]
        for (place, group) in groups.enumerated() {
            for row in group {
                giving[RowIdentity(entity: row.change.entity.id, identity: row.old), default: []].append(place)
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
            // If rows have swapped keys, there is no first one.
            for row in groups[place].suffix(1) {
                let name = RowIdentity(entity: row.change.entity.id, identity: row.new)
                stack += (giving[name] ?? []).filter { !isSeen[$0] }
            }
        }
        return order
    }
}
