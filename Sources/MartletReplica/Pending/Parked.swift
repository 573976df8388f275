public import Foundation
package import GRDB
package import MartletCore
public import MartletStore

/// A pending change: a row, a reference or a change that can't be applied yet.
public struct ParkedItem: Sendable, Equatable {
    /// The item's ID, for `Store.discardParked(_:)`: `r` and a number for a row, `p` and twelve hexadecimal digits for
    /// a reference, `t` and a number for a transaction or a part of one.
    public var id: String
    public var reason: ParkReason
    public var detail: String?
    public var entity: String?
    public var identity: StableID?
    public var origin: NodeID?
    public var sequence: Int64?
    public var values: [String: Value]
    public var since: Date
}

/// A value that merging overruled.
public struct Conflict: Sendable, Equatable {
    public var id: Int64
    public var kind: ConflictKind
    public var entity: String
    public var identity: StableID
    public var column: String?
    /// The overruled value.
    public var value: Value
    public var loser: Stamp
    public var loserName: String?
    public var winner: Stamp
    public var winnerName: String?
    public var since: Date
    public var reapplied: Date?
}

extension Store {
    /// Returns the pending changes. Includes updates of deleted rows, and changes that a filter rejects, only on
    /// request: nothing that would let them apply arrives by itself.
    public func parked(includingDeleted: Bool = false) throws -> [ParkedItem] {
        try readSync { try ParkedItem.all($0, includingDeleted: includingDeleted) } ?? []
    }

    /// Returns what merging overruled, oldest first.
    ///
    /// - Parameter count: how many of the newest conflicts to read. Nil: all.
    public func conflicts(last count: Int? = nil) throws -> [Conflict] {
        try readSync { db in
            let catalog = try Catalog.load(db)
            let nodes = try NodeDirectory(db)
            let names = try Row.fetchAll(db, sql: "SELECT id, name FROM \(InternalName.nodes)")
            let nameOf = Dictionary(
                names.map { ($0["id"] as Int64, $0["name"] as String?) }, uniquingKeysWith: { a, _ in a })
            let read = try PreparedStatement(
                db,
                """
                SELECT id, kind, entity, ident, slot, value, reference, hlc, node, winner_hlc, winner_node,
                since, reapplied
                FROM (SELECT * FROM _martlet_conflicts ORDER BY id DESC LIMIT ?1) ORDER BY id
                """)
            read.bind(1, Int64(count ?? -1))
            var conflicts: [Conflict] = []
            while try read.step() {
                guard let kind = ConflictKind(rawValue: read.text(1)) else { continue }
                let entity = catalog[read.integer(2)]
                let slot = read.optionalInteger(4)
                conflicts.append(
                    Conflict(
                        id: read.integer(0), kind: kind, entity: entity?.name ?? "?",
                        identity: StableID(bytes: read.blob(3)),
                        column: slot.flatMap { slot in entity?.columns.first { $0.slot == Int(slot) }?.name },
                        value: read.integer(6) == 0
                            ? read.value(5) : try StableID(bytes: read.blob(5)).values().first ?? .null,
                        loser: nodes.stamp(read, 7), loserName: nameOf[read.integer(8)] ?? nil,
                        winner: nodes.stamp(read, 9), winnerName: nameOf[read.integer(10)] ?? nil,
                        since: Date(milliseconds: read.integer(11)),
                        reapplied: read.optionalInteger(12).map { Date(milliseconds: $0) }))
            }
            return conflicts
        } ?? []
    }

    /// Sets a column to the value that was overruled, as a new change by this author.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` if there is no such conflict, its row is not
    ///   in this store, or it concerns no column.
    public func reapplyConflict(_ id: Int64, author: String?) throws {
        guard let conflict = try conflicts().first(where: { $0.id == id }) else {
            throw StoreError(
                .invalidArgument, "There is no conflict \(id).", hint: "List them with `martlet conflicts STORE`.")
        }
        guard let name = conflict.column else {
            throw StoreError(
                .invalidArgument, "Conflict \(id) concerns a row, so there is no column value to reapply.",
                hint: "The row returns when the other one is deleted.")
        }
        let isGone = StoreError(
            .invalidArgument, "The row of conflict \(id) is not in the table.", hint: "It was deleted, or is parked.")
        try write(author: author, context: "reapply") { db in
            let catalog = try Catalog.load(db)
            let resolver = IdentityResolver(catalog: catalog, statements: StatementCache())
            guard let entity = catalog[conflict.entity] else {
                throw StoreError(.invalidArgument, "Table \(conflict.entity) is not tracked.")
            }
            var value = conflict.value
            if case .reference(let reference) = value {
                guard let target = catalog[reference.entity], let row = try resolver.row(db, target, reference.identity)
                else {
                    throw StoreError(.invalidArgument, "The row that the value refers to is missing.")
                }
                value = .integer(row)
            }
            guard try TextEncoding(db).holds(value) else { throw TextEncoding.refusal }
            guard let place = try RowPlace(db, resolver, entity, conflict.identity) else { throw isGone }
            let update = try PreparedStatement(
                db, "UPDATE \(entity.name.quotedName) SET \(name.quotedName) = ?1 WHERE \(place.condition)")
            update.bind(1, value)
            place.bind(update)
            try update.run()
            guard update.changes == 1 else { throw isGone }
            try ConflictJournal.noteReapplied(db, id, at: WallClock.milliseconds)
        }
    }

    /// Returns the present value of the column that a conflict concerns. Nil if the row or the column is not in this
    /// store, or if the conflict concerns no column.
    public func currentValue(of conflict: Conflict) throws -> Value? {
        try read { db in
            let catalog = try Catalog.load(db)
            let resolver = IdentityResolver(catalog: catalog, statements: StatementCache())
            guard let name = conflict.column, let entity = catalog[conflict.entity],
                entity.columns.contains(where: { $0.name == name }),
                let place = try RowPlace(db, resolver, entity, conflict.identity)
            else { return nil }
            let read = try PreparedStatement(
                db, "SELECT \(name.quotedName) FROM \(entity.name.quotedName) WHERE \(place.condition)")
            place.bind(read)
            return try read.step() ? read.value(0) : nil
        }
    }

    /// Reads from the sync tables. Returns nil for a store that never synced.
    package func readSync<T>(_ body: (Database) throws -> T) throws -> T? {
        try read { db in
            guard try db.hasTable("_martlet_shadows") else { return nil }
            return try body(db)
        }
    }
}

/// How statements find the row that has a stable ID.
private struct RowPlace {
    /// The condition after `WHERE`. Its parameters begin at the second.
    let condition: String
    private let values: [Value]

    /// Nil if no row in this store has the ID.
    init?(_ db: Database, _ resolver: IdentityResolver, _ entity: Entity, _ identity: StableID) throws {
        let columns: [String]
        if let row = try resolver.row(db, entity, identity) {
            columns = [entity.integerKey ?? ""]
            values = [.integer(row)]
        } else if !entity.isKeyedByInteger, let local = try resolver.localValues(db, entity, identity) {
            columns = entity.identityColumns.map(\.name)
            values = local
        } else {
            return nil
        }
        condition = columns.enumerated().map { "\($1.quotedName) = ?\($0 + 2)" }.joined(separator: " AND ")
    }

    func bind(_ statement: PreparedStatement) {
        for (index, value) in values.enumerated() { statement.bind(Int32(index + 2), value) }
    }
}
