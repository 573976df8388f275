public import Foundation
import GRDB
public import MartletStore

/// A row, a reference or a change that is kept aside until something comes.
public struct ParkedItem: Sendable, Equatable {
    /// Names the item for `retry` and `discard`: a letter for what it is, and a number.
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

/// A message that can't be understood.
public struct QuarantinedMessage: Sendable, Equatable {
    public var id: Int64
    public var topic: String
    public var partition: Int32
    public var offset: Int64
    public var reason: String
    public var headers: [String]
    public var payloadBytes: Int
    public var since: Date
}

/// A value that merging overruled.
public struct Conflict: Sendable, Equatable {
    public var id: Int64
    public var kind: ConflictKind
    public var entity: String
    public var identity: StableID
    public var column: String?
    /// What was overruled.
    public var value: Value
    public var loser: Stamp
    public var loserName: String?
    public var winner: Stamp
    public var winnerName: String?
    public var since: Date
    public var reapplied: Date?
}

extension Store {
    /// What is kept aside. Updates of deleted rows, which wait for nothing, only where they are asked for.
    public func parked(includingDeleted: Bool = false) throws -> [ParkedItem] {
        try sync { db in
            let catalog = try Catalog.load(db)
            var items: [ParkedItem] = []
            for row in try Row.fetchAll(db, sql: "SELECT * FROM _martlet_shadows ORDER BY id") {
                guard let reason = ParkReason(rawValue: row["reason"]), includingDeleted || reason != .deleted else {
                    continue
                }
                let entity = catalog[row["entity"] as Int64]
                let id: Int64 = row["id"]
                let columns = try PreparedStatement(
                    db, "SELECT slot, value, reference FROM _martlet_shadow_columns WHERE shadow = ?1")
                columns.bind(1, id)
                var values: [String: Value] = [:]
                while try columns.step() {
                    let name = entity?.columns.first { $0.slot == Int(columns.integer(0)) }?.name ?? "?"
                    values[name] =
                        columns.integer(2) == 0 ? columns.value(1) : try StableID(bytes: columns.blob(1)).values().first
                }
                items.append(
                    ParkedItem(
                        id: "r\(id)", reason: reason, detail: row["detail"], entity: entity?.name,
                        identity: StableID(bytes: bytes(row, "ident")), values: values, since: date(row["since"])))
            }
            for row in try Row.fetchAll(
                db, sql: "SELECT rowid AS n, * FROM (SELECT row_number() OVER () AS rowid, * FROM _martlet_pending)")
            {
                let entity = catalog[row["entity"] as Int64]
                let column = entity?.columns.first { $0.slot == (row["slot"] as Int) }?.name ?? "?"
                let value = try StableID(bytes: bytes(row, "value")).values().first ?? .null
                items.append(
                    ParkedItem(
                        id: "p\(row["n"] as Int64)", reason: .missingTarget,
                        detail: "the column is null until its target comes",
                        entity: entity?.name, identity: StableID(bytes: bytes(row, "ident")), values: [column: value],
                        since: date(row["since"])))
            }
            for row in try Row.fetchAll(
                db, sql: "SELECT id, reason, detail, origin, sequence, since FROM _martlet_deferred ORDER BY id")
            {
                guard let reason = ParkReason(rawValue: row["reason"]) else { continue }
                items.append(
                    ParkedItem(
                        id: "t\(row["id"] as Int64)", reason: reason, detail: row["detail"],
                        origin: NodeID(bytes: bytes(row, "origin")),
                        sequence: row["sequence"], values: [:], since: date(row["since"])))
            }
            return items
        } ?? []
    }

    /// Messages that can't be understood.
    public func quarantined() throws -> [QuarantinedMessage] {
        try sync { db in
            try Row.fetchAll(
                db,
                sql:
                    "SELECT id, topic, partition, offset, reason, headers, length(payload) AS size, since FROM _martlet_quarantine ORDER BY id"
            ).map { row in
                QuarantinedMessage(
                    id: row["id"], topic: row["topic"], partition: row["partition"], offset: row["offset"],
                    reason: row["reason"],
                    headers: (row["headers"] as String).split(separator: "\n").map(String.init),
                    payloadBytes: row["size"],
                    since: date(row["since"]))
            }
        } ?? []
    }

    /// Throws a quarantined message away. Returns false where there is none of that number.
    public func discardQuarantined(_ id: Int64) throws -> Bool {
        try mapErrors {
            try database.write { db in
                guard try db.tableExists("_martlet_quarantine") else { return false }
                try db.execute(sql: "DELETE FROM _martlet_quarantine WHERE id = ?", arguments: [id])
                return db.changesCount > 0
            }
        }
    }

    /// What merging overruled, newest last.
    public func conflicts() throws -> [Conflict] {
        try sync { db in
            let catalog = try Catalog.load(db)
            let nodes = try NodeDirectory(db)
            let names = try Row.fetchAll(db, sql: "SELECT id, name FROM \(InternalName.nodes)")
            let nameOf = Dictionary(
                names.map { ($0["id"] as Int64, $0["name"] as String?) }, uniquingKeysWith: { a, _ in a })
            let read = try PreparedStatement(
                db,
                """
                SELECT id, kind, entity, ident, slot, value, reference, hlc, node, winner_hlc, winner_node, since, reapplied
                FROM _martlet_conflicts ORDER BY id
                """)
            var conflicts: [Conflict] = []
            func stamp(_ column: Int32) -> Stamp {
                Stamp(
                    time: HybridTime(rawValue: UInt64(bitPattern: read.integer(column))),
                    node: nodes.node(read.integer(column + 1)))
            }
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
                        loser: stamp(7), loserName: nameOf[read.integer(8)] ?? nil, winner: stamp(9),
                        winnerName: nameOf[read.integer(10)] ?? nil, since: date(read.integer(11)),
                        reapplied: read.optionalInteger(12).map(date)))
            }
            return conflicts
        } ?? []
    }

    /// Sets a column to the value that was overruled, as a new change by this author.
    ///
    /// - Throws: ``/MartletStore/StoreError`` with code `.invalidArgument` when there is no such conflict, its row is not
    ///   here, or it is not about a column.
    public func reapplyConflict(_ id: Int64, author: String?) throws {
        guard let conflict = try conflicts().first(where: { $0.id == id }) else {
            throw StoreError(
                .invalidArgument, "There is no conflict \(id).", hint: "`martlet conflicts STORE` lists them.")
        }
        guard let name = conflict.column else {
            throw StoreError(
                .invalidArgument, "Conflict \(id) is not about a column.",
                hint: "The row comes back when the other one goes.")
        }
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
                    throw StoreError(.invalidArgument, "The row that the value refers to is not here.")
                }
                value = .integer(row)
            }
            let row = try resolver.row(db, entity, conflict.identity)
            let identity = entity.isKeyedByInteger ? nil : try resolver.localValues(db, entity, conflict.identity)
            guard row != nil || identity != nil else {
                throw StoreError(
                    .invalidArgument, "The row of conflict \(id) is not here.", hint: "It was deleted, or is parked.")
            }
            let match = row == nil ? entity.identityColumns.map(\.name) : [entity.integerKey ?? ""]
            let condition = match.enumerated().map { "\($1.quotedName) = ?\($0 + 2)" }.joined(separator: " AND ")
            let update = try PreparedStatement(
                db, "UPDATE \(entity.name.quotedName) SET \(name.quotedName) = ?1 WHERE \(condition)")
            update.bind(1, value)
            if let row {
                update.bind(2, row)
            } else {
                for (index, part) in (identity ?? []).enumerated() { update.bind(Int32(index + 2), part) }
            }
            try update.run()
            guard update.changes == 1 else {
                throw StoreError(
                    .invalidArgument, "The row of conflict \(id) is not here.", hint: "It was deleted, or is parked.")
            }
            try db.execute(
                sql: "UPDATE _martlet_conflicts SET reapplied = ? WHERE id = ?",
                arguments: [WallClock.milliseconds, id])
        }
    }

    /// Reads what syncing keeps. Nil in a store that never synced.
    private func sync<T>(_ body: (Database) throws -> T) throws -> T? {
        try mapErrors {
            try database.read { db in
                guard try db.tableExists("_martlet_shadows") else { return nil }
                return try body(db)
            }
        }
    }
}

private func bytes(_ row: Row, _ name: String) -> [UInt8] {
    let data: Data? = row[name]
    return data.map(Array.init) ?? []
}

private func date(_ milliseconds: Int64) -> Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }
