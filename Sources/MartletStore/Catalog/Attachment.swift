package import GRDB

/// Starts to track tables, and changes the settings of tracked ones, in the caller's transaction.
package enum Attachment {
    /// Does the work of ``Store/attach(_:)``. The caller closes the history transaction.
    ///
    /// - Parameter progress: Called from time to time with the number of existing rows processed so far.
    package static func run(
        _ db: Database, _ request: AttachRequest, progress: (@Sendable (AttachProgress) -> Void)? = nil
    ) throws -> AttachReport {
        var report = AttachReport()
        let inspector = TableInspector(db)
        let all = try inspector.userTables()
        let named = request.namedTables
        for name in named.sorted() where !all.contains(where: { $0.lowercased() == name }) {
            if let error = try untrackable(inspector, name) { throw error }
            throw StoreError(
                .invalidArgument, "There is no table \(name).", hint: "Use one of \(all.joined(separator: ", ")).")
        }
        if request.tables.isEmpty {
            report.refused = try inspector.virtualTables().compactMap { name in
                try untrackable(inspector, name).map { .init(table: name, error: $0) }
            }
        }
        var new: [Int64] = []
        var known: [Int64] = []
        let tracked = try Catalog.load(db)
        for name in all where request.tables.isEmpty || named.contains(name.lowercased()) {
            if let entity = tracked.entities.first(where: { $0.name == name }) {
                known.append(entity.id)
                if try TrackedTable(db, entity, request).change() {
                    report.changed.append(name)
                } else {
                    report.alreadyTracked.append(name)
                }
                continue
            }
            do {
                guard let table = try inspector.table(name) else { continue }
                // As a new table it would lose its history, and the rows that are missing would never be deleted.
                if let awaited = try SchemaFollower.awaitedEntity(db, table) {
                    let hasChanged = try SchemaFollower.withTracked(db, awaited) {
                        try TrackedTable(db, $0, request).changeAwaited()
                    }
                    if hasChanged ?? false { report.changed.append(name) } else { report.alreadyTracked.append(name) }
                    continue
                }
                new.append(try register(db, table, request))
            } catch let error as StoreError where !named.contains(name.lowercased()) {
                report.refused.append(.init(table: name, error: error))
            }
        }
        let catalog = try Catalog.load(db)
        let attached = new.compactMap { catalog[$0] }
        let tally = progress.map { RowTally($0) }
        try ExistingRowClocks.adopt(db, attached, catalog: catalog, seed: request.seed, tally, report: &report)
        let rows = ExistingRows(db: db, catalog: catalog, tally: tally)
        if request.logsUnpublishedRows {
            for entity in known.compactMap({ catalog[$0] }) {
                report.unpublishedRowCount += try rows.logUnpublished(entity)
            }
        }
        for entity in attached {
            if request.logsExistingRows {
                try rows.logAll(entity)
            } else {
                try RowHashes.adopt(db, entity)
            }
            try FormerNames.record(db, entity, request)
        }
        report.attached = try attached.isEmpty ? [] : Catalog.load(db).entities.filter { new.contains($0.id) }
        try SchemaFollower.reinstallTriggers(db)
        try SchemaFollower.remember(db)
        return report
    }

    private static func untrackable(_ inspector: TableInspector, _ name: String) throws -> StoreError? {
        guard let found = try inspector.kind(of: name), found.kind != "table" else { return nil }
        let kind = found.kind == "view" ? "view" : "virtual table"
        return StoreError(
            .notTrackable, "\(found.name) is a \(kind), and SQLite runs no row triggers for those.",
            hint: found.kind == "view"
                ? "Attach the tables that it reads from."
                : "Attach the tables that its content comes from: your triggers that fill it run on every node."
        )
    }

    private static func register(
        _ db: Database, _ table: TableInspector.Table, _ request: AttachRequest
    ) throws -> Int64 {
        let declared = request.identity(of: table.name)
        let identity = try IdentityChooser(table: table, declared: declared).choose()
        let policy =
            request.uniquePolicies.first { $0.key.lowercased() == table.name.lowercased() }?.value ?? .keepNewest
        guard !table.hasEqualColumnNames else {
            throw StoreError(
                .notTrackable,
                "Table \(table.name) has two columns whose names differ only in their Unicode encoding.",
                hint: "Rename one of them.")
        }
        let most = try StoreSchema.maxColumnCount(db)
        guard table.columns.count <= most else {
            throw StoreError(
                .notTrackable,
                "Table \(table.name) has \(table.columns.count) columns; the history can hold at most \(most).",
                hint: "Split it into two tables.")
        }
        try TableProbe.check(db, table: table.name)
        try SchemaFollower.forgetLost(db, named: table.name)
        try db.execute(
            sql: """
                INSERT INTO \(InternalName.entities)(name, state, identity, old_values, unique_policy, chains)
                VALUES (?, 'tracked', ?, ?, ?, 1)
                """,
            arguments: [table.name, try Catalog.encode(identity), request.keepsOldValues, policy.rawValue])
        let id = db.lastInsertedRowID
        try RowHashes.setPosition(db, id, db.lastChange())
        try SchemaFollower.recordColumns(db, entity: id, identity: identity, table)
        return id
    }
}

extension AttachRequest {
    /// The tables named anywhere in the request, in lower case.
    var namedTables: Set<String> {
        Set(
            (tables + identities.keys + uniquePolicies.keys + formerNames.keys + formerColumnNames.keys)
                .map { $0.lowercased() })
    }

    func identity(of table: String) -> [String]? { value(identities, table) }

    func value<T>(_ values: [String: T], _ table: String) -> T? {
        values.first { $0.key.lowercased() == table.lowercased() }?.value
    }
}
