public import Foundation
import GRDB

/// What `attach` is asked to do.
public struct AttachRequest: Sendable {
    /// The tables to track. Empty (the default): every table that a user made.
    public var tables: [String] = []
    /// Columns that identify the rows of a table, by table, instead of the rule that Martlet would take.
    public var identities: [String: [String]] = [:]
    /// Copies of one database that are attached with the same seed agree on the IDs that Martlet assigns to their rows.
    /// By default each attach assigns its own.
    public var seed: UUID?
    /// Keeps the values from before an update or a delete too. Off by default.
    public var keepsOldValues = false
    /// Which row keeps a unique key that two claim, by table. `keepNewest` by default.
    public var uniquePolicies: [String: UniquePolicy] = [:]
    /// Puts the rows that are there already into the history, as inserts, so that they are published. Off by default:
    /// copies of one database have them all.
    public var logsExistingRows = false

    public init() {}
}

/// What `attach` did with each table.
public struct AttachReport: Sendable {
    public struct Refusal: Sendable {
        public var table: String
        public var error: StoreError
    }

    /// The tables that are tracked from now on.
    public var attached: [Entity] = []
    /// The tables that were tracked before.
    public var alreadyTracked: [String] = []
    public var refused: [Refusal] = []
    /// Things to know about tables that are tracked.
    public var warnings: [String] = []
    /// How many rows were there already.
    public var existingRowCount = 0
}

extension Store {
    /// Begins to track tables: from the commit of this call on, every change of theirs is in the history.
    ///
    /// One transaction: no write of another program falls between. Tables that can't be tracked are reported with the
    /// reason and a remedy, and don't stop the others, unless the request names them.
    /// - Throws: ``StoreError`` with code `.notTrackable` or `.invalidArgument` for a table that the request names.
    public func attach(_ request: AttachRequest = .init()) throws -> AttachReport {
        try write(author: nil, context: "attach") { db in
            var report = AttachReport()
            let inspector = TableInspector(db)
            let all = try inspector.userTables()
            let named = Set(
                (request.tables + request.identities.keys + request.uniquePolicies.keys).map { $0.lowercased() })
            for name in named.sorted() where !all.contains(where: { $0.lowercased() == name }) {
                if let error = try Self.untrackable(inspector, name) { throw error }
                throw StoreError(
                    .invalidArgument, "There is no table \(name).",
                    hint: "The tables are \(all.joined(separator: ", ")).")
            }
            if request.tables.isEmpty {
                report.refused = try inspector.virtualTables().compactMap { name in
                    try Self.untrackable(inspector, name).map { .init(table: name, error: $0) }
                }
            }
            var new: [(Int64, TableInspector.Table)] = []
            let tracked = Set(try Catalog.load(db).entities.map(\.name))
            for name in all where request.tables.isEmpty || named.contains(name.lowercased()) {
                if tracked.contains(name) {
                    report.alreadyTracked.append(name)
                    continue
                }
                do {
                    guard let table = try inspector.table(name) else { continue }
                    new.append((try register(db, table, request), table))
                } catch let error as StoreError where !named.contains(name.lowercased()) {
                    report.refused.append(.init(table: name, error: error))
                }
            }
            let catalog = try Catalog.load(db)
            let attached = new.compactMap { catalog[$0.0] }
            try RowRegistry.adopt(db, attached, catalog: catalog, seed: request.seed, report: &report)
            for entity in attached {
                if request.logsExistingRows { try RowRegistry.logExistingRows(db, entity) }
                report.warnings += Self.warnings(entity)
            }
            report.attached = attached
            try SchemaFollower.reinstallTriggers(db)
            try SchemaFollower.remember(db)
            return report
        }
    }

    private static func untrackable(_ inspector: TableInspector, _ name: String) throws -> StoreError? {
        let found = try inspector.table(name) ?? inspector.table(ignoringCase: name)
        guard let found, found.kind != "table" else { return nil }
        let kind = found.kind == "view" ? "view" : "virtual table"
        return StoreError(
            .notTrackable, "\(found.name) is a \(kind), for which SQLite runs no row triggers.",
            hint: found.kind == "view"
                ? "Attach the tables that it reads." : "Attach the tables that its content comes from.")
    }

    private func register(_ db: Database, _ table: TableInspector.Table, _ request: AttachRequest) throws -> Int64 {
        let declared = request.identities.first { $0.key.lowercased() == table.name.lowercased() }?.value
        let identity = try IdentityChooser(table: table, declared: declared).choose()
        let policy =
            request.uniquePolicies.first { $0.key.lowercased() == table.name.lowercased() }?.value ?? .keepNewest
        guard Set(table.columns.map(\.name)).count == table.columns.count else {
            throw StoreError(
                .notTrackable,
                "Table \(table.name) has two columns whose names differ only in how Unicode writes them.",
                hint: "Rename one of them.")
        }
        try SchemaFollower.forgetLost(db, named: table.name)
        try db.execute(
            sql:
                "INSERT INTO \(InternalName.entities)(name, state, identity, old_values, unique_policy) VALUES (?, 'tracked', ?, ?, ?)",
            arguments: [table.name, try Catalog.encode(identity), request.keepsOldValues, policy.rawValue])
        let id = db.lastInsertedRowID
        try SchemaFollower.recordColumns(db, entity: id, identity: identity, table)
        return id
    }

    private static func warnings(_ entity: Entity) -> [String] {
        entity.uniqueKeys.filter(\.hasExpression).map {
            "Table \(entity.name): index \($0.index) is on an expression. A row that INSERT OR REPLACE displaces through it is "
                + "found by the audit at the agent's next start, not at once."
        }
    }
}

extension Store {
    /// The tables that are tracked, in the order in which they were attached.
    public func trackedEntities() throws -> [Entity] {
        try mapErrors { try database.read { try Catalog.load($0).entities } }
    }

    /// The tables that were tracked until they were dropped or lost their identity. One that comes back under its name is
    /// tracked again.
    public func lostEntities() throws -> [LostEntity] {
        try mapErrors {
            try database.read { db in
                try Row.fetchAll(
                    db, sql: "SELECT name, reason FROM \(InternalName.entities) WHERE state = 'lost' ORDER BY id"
                ).map {
                    LostEntity(name: $0["name"], reason: $0["reason"] ?? "")
                }
            }
        }
    }
}
