import Foundation
package import GRDB
package import MartletCore
import MartletStore

/// Rows that local changes removed, and keys that rows left, while others may still refer to them, since programs may
/// have foreign keys switched off. They are processed once all local changes have their clocks, and survive a commit
/// that ends before that.
///
/// Confined to the engine's connection. Recreated after a rollback, together with its context.
package final class RemovedTargets {
    /// What rows of one table left behind.
    package struct Left {
        package var rows: [RemovedTarget] = []
        /// True if rows left values that are not known: any dangling reference may have referred to one of them.
        package var isUnknown = false
    }

    /// For how many rows of a table the referenced values are remembered.
    private static let knownRows = 8

    /// What no commit has stored yet.
    private var left: [Int64: Left] = [:]
    /// How many rows of each table have their values, in memory and in the store.
    private var known: [Int64: Int] = [:]
    /// Tables for which the store records that values are unknown.
    private var keptUnknown: Set<Int64> = []
    /// True if the store has some.
    package private(set) var hasKept = false
    /// The integer keys in the store by entity, of the entities for which they were asked.
    private var storedKeys: [Int64: Set<Int64>] = [:]

    package init(_ db: Database) throws {
        let read = try PreparedStatement(
            db, "SELECT entity, count(known), max(row IS NULL AND known IS NULL) FROM _martlet_left GROUP BY entity")
        while try read.step() {
            hasKept = true
            known[read.integer(0)] = Int(read.integer(1))
            if read.integer(2) != 0 { keptUnknown.insert(read.integer(0)) }
        }
    }

    package var isEmpty: Bool { left.isEmpty && !hasKept }

    /// - Parameter keys: the foreign keys that refer to the entity by value.
    package func add(_ row: RemovedTarget, of entity: Int64, _ keys: [ValueKey]) {
        var row = row
        let targets = keys.flatMap(\.targetSlots)
        // If nothing refers by value, a row without an integer key leaves only its table to record.
        var isKnown =
            targets.isEmpty
            ? row.row != nil
            : targets.allSatisfy { slot in
                slot.map { row.values[$0] != nil } ?? (row.row != nil)
            }
        if !targets.isEmpty, isKnown {
            isKnown = known[entity, default: 0] < Self.knownRows
            if isKnown { known[entity, default: 0] += 1 }
        }
        row.values = isKnown ? row.values.filter { targets.contains($0.key) } : [:]
        if !isKnown { left[entity, default: Left()].isUnknown = true }
        guard row.row != nil || !row.values.isEmpty else { return }
        left[entity, default: Left()].rows.append(row)
    }

    /// Stores what a commit leaves to a later one.
    package func keep(_ db: Database) throws {
        guard !left.isEmpty else { return }
        let save = try PreparedStatement(
            db, "INSERT INTO _martlet_left(entity, row, ident, known) VALUES (?1, ?2, ?3, ?4)")
        for (entity, left) in left.sorted(by: { $0.key < $1.key }) {
            var rows = left.rows
            if left.isUnknown, keptUnknown.insert(entity).inserted { rows.append(RemovedTarget()) }
            for row in rows {
                save.bind(1, entity)
                save.bind(2, row.row.map { .integer($0) } ?? .null)
                save.bind(3, row.identity.map { .blob($0.bytes) } ?? .null)
                save.bind(4, row.values.isEmpty ? .null : .blob(Self.encode(row.values)))
                try save.run()
            }
        }
        left = [:]
        hasKept = true
        storedKeys = [:]
    }

    /// Returns the integer keys of an entity's rows that a later commit, or a later part of this one, processes.
    package func keys(_ db: Database, of entity: Int64) throws -> Set<Int64> {
        guard hasKept else { return [] }
        if let known = storedKeys[entity] { return known }
        let read = try PreparedStatement(db, "SELECT row FROM _martlet_left WHERE entity = ?1 AND row IS NOT NULL")
        read.bind(1, entity)
        var keys: Set<Int64> = []
        while try read.step() { keys.insert(read.integer(0)) }
        storedKeys[entity] = keys
        return keys
    }

    /// Takes what is to be processed now.
    ///
    /// - Parameter limit: how many rows to take of those in the store.
    /// - Returns: the rows by entity, and whether there are more.
    package func take(_ db: Database, limit: Int) throws -> (left: [Int64: Left], hasMore: Bool) {
        guard hasKept else {
            defer { forget() }
            return (left, false)
        }
        try keep(db)
        var taken: [Int64: Left] = [:]
        var last: Int64?
        let read = try PreparedStatement(
            db, "SELECT id, entity, row, ident, known FROM _martlet_left ORDER BY id LIMIT ?1")
        read.bind(1, Int64(limit))
        while try read.step() {
            last = read.integer(0)
            let entity = read.integer(1)
            if read.isNull(2), read.isNull(4) {
                taken[entity, default: Left()].isUnknown = true
                continue
            }
            let row = try RemovedTarget(
                identity: read.optionalBlob(3).map { StableID(bytes: $0) }, row: read.optionalInteger(2),
                values: read.optionalBlob(4).map(Self.decode) ?? [:])
            taken[entity, default: Left()].rows.append(row)
            if let key = row.row { storedKeys[entity]?.remove(key) }
        }
        try db.execute(sql: "DELETE FROM _martlet_left WHERE id <= ?", arguments: [last])
        let hasMore = try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM _martlet_left)") ?? false
        if !hasMore { forget() }
        return (taken, hasMore)
    }

    private func forget() {
        (left, known, keptUnknown, hasKept, storedKeys) = ([:], [:], [], false, [:])
    }

    private static func encode(_ values: [Int: Value]) -> [UInt8] {
        StableID(values: values.sorted { $0.key < $1.key }.flatMap { [.integer(Int64($0)), $1] }).bytes
    }

    private static func decode(_ bytes: [UInt8]) throws -> [Int: Value] {
        let all = try StableID(bytes: bytes).values()
        var values: [Int: Value] = [:]
        for index in stride(from: 0, to: all.count - 1, by: 2) {
            if case .integer(let slot) = all[index] { values[Int(slot)] = all[index + 1] }
        }
        return values
    }
}

/// A row that a local change removed, or that has left a key.
package struct RemovedTarget {
    /// Nil for a row without an ID, and for one that is still in its table.
    package var identity: StableID?
    package var row: Int64?
    /// The known values of columns that others refer to by value, by slot.
    package var values: [Int: Value] = [:]

    package init(identity: StableID? = nil, row: Int64? = nil, values: [Int: Value] = [:]) {
        self.identity = identity
        self.row = row
        self.values = values
    }
}
