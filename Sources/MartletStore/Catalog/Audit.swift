package import GRDB

/// Compares the rows of tracked tables with their side tables and the log.
package enum Audit {
    /// Runs an audit, and logs its findings in the caller's transaction.
    ///
    /// - Parameter only: The entities to look at. Nil means all.
    package static func run(
        _ db: Database, only: Set<Int64>? = nil, progress: @escaping (AuditProgress) throws -> Void = { _ in }
    ) throws -> AuditReport {
        try RecentClocks.flush(db)
        let findings = try AuditFindings(db, only: only, progress: progress)
        var report = AuditReport()
        for (entity, rows) in findings.tables { try findings.log(db, rows, of: entity, &report) }
        return report
    }

    /// Logs what happened to tables that had no triggers for a while: rows that came and went, and rows whose values
    /// changed. Logs them in the order in which identities become free: first deleted rows, then rows with a new
    /// identity, then new rows.
    package static func runBlind(_ db: Database, _ entities: Set<Int64>) throws -> AuditReport {
        try RecentClocks.flush(db)
        try RowHashes.advance(db, through: db.lastChange(), only: entities)
        var report = AuditReport()
        let findings = try AuditFindings(db, only: entities) { _ in }
        for (entity, rows) in findings.tables { try findings.log(db, rows.filter { !$0.isThere }, of: entity, &report) }
        let catalog = try Catalog.load(db)
        let resolver = try resolver(db, catalog, catalog.entities.filter { entities.contains($0.id) })
        var renumbered: [(entity: Entity, rows: [Int64])] = []
        for entity in catalog.entities where entities.contains(entity.id) {
            // Logged as inserted below. To log values of such a row as changed would make it one that was touched.
            let appeared = findings.tables.first { $0.entity.id == entity.id }?.rows.filter(\.isThere) ?? []
            let changed = try RebuiltTable(db, entity, resolver).logChanged(except: Set(appeared.map(\.hashKey)))
            if changed.count > 0 { report.changed[entity.name] = changed.count }
            renumbered.append((entity, changed.renumbered))
        }
        for (entity, rows) in renumbered where !rows.isEmpty {
            let logger = try AuditLogger(db, entity, resolver)
            for row in rows { _ = try logger.log(AuditedRow(name: .row(row), isThere: true)) }
        }
        for (entity, rows) in findings.tables { try findings.log(db, rows.filter(\.isThere), of: entity, &report) }
        return report
    }

    /// Rows whose identity refers to other rows may have arrived together with those, so neither may be stamped yet.
    static func resolver(_ db: Database, _ catalog: Catalog, _ entities: [Entity]) throws
        -> IdentityResolver
    {
        let refersByName = entities.contains { entity in entity.identityColumns.contains { $0.reference != nil } }
        return IdentityResolver(
            catalog: catalog, statements: StatementCache(), encoding: try TextEncoding(db),
            unstamped: refersByName ? try UnstampedInserts(db, catalog) : nil)
    }

    /// Does the work of ``run(_:only:progress:)`` in several transactions, between which others can write. The caller
    /// must not be in a transaction.
    ///
    /// Reads the tables without a lock, and logs its findings a slice at a time, skipping rows that were touched in the
    /// meantime.
    ///
    /// - Parameter progress: Is called from time to time. If it throws, the audit ends with that error; what was logged
    ///   stays.
    package static func runSliced(
        _ db: Database, patience: Duration, progress: @escaping (AuditProgress) throws -> Void = { _ in }
    ) throws -> AuditReport {
        try db.immediateTransaction {
            try SchemaFollower.follow(db, patience: patience)
            try TransactionCloser.close(db, mark: TransactionMark())
            try RecentClocks.flush(db)
        }
        let findings = try db.readTransaction { try AuditFindings(db, only: nil, progress: progress) }
        var report = AuditReport()
        for (entity, rows) in findings.tables {
            var rest = rows[...]
            while !rest.isEmpty {
                try progress(AuditProgress(table: entity.name, rows: rows.count - rest.count))
                let isDone = try db.immediateTransaction {
                    // The findings hold only for the schema and the clocks with which they were made.
                    guard try findings.isCurrent(db) else { return false }
                    try findings.log(db, Array(rest.prefix(sliceRows)), of: entity, &report)
                    try TransactionCloser.close(db, mark: mark)
                    return true
                }
                guard isDone else { return try runWhole(db, adding: report, patience: patience, progress: progress) }
                rest = rest.dropFirst(sliceRows)
            }
        }
        return report
    }

    /// The number of rows logged in one transaction, which takes some 10 ms.
    private static let sliceRows = 500
    private static let mark = TransactionMark(context: "audit")

    private static func runWhole(
        _ db: Database, adding report: AuditReport, patience: Duration,
        progress: @escaping (AuditProgress) throws -> Void
    ) throws -> AuditReport {
        try db.immediateTransaction {
            try SchemaFollower.follow(db, patience: patience)
            try TransactionCloser.close(db, mark: TransactionMark())
            var report = report
            report.add(try run(db, progress: progress))
            try TransactionCloser.close(db, mark: mark)
            return report
        }
    }
}

/// The findings of an audit, and the state of the store for which they hold.
private final class AuditFindings {
    private(set) var tables: [(entity: Entity, rows: [AuditedRow])] = []
    private let resolver: IdentityResolver
    private let stamped: Int64
    /// Rows with changes after this ID were touched after the scan.
    private var seen: Int64
    private var touchedRows: [Int64: Set<Int64>] = [:]
    private var touchedNames: [Int64: Set<StableID>] = [:]

    init(_ db: Database, only: Set<Int64>?, progress: @escaping (AuditProgress) throws -> Void) throws {
        let catalog = try Catalog.load(db)
        let entities = catalog.entities.filter { only?.contains($0.id) ?? true }
        resolver = try Audit.resolver(db, catalog, entities)
        stamped = try Meta.integer(db, MetaKey.stamped) ?? 0
        seen = try db.lastChange()
        let scan = try AuditScan(db, entities, resolver, progress: progress)
        for entity in entities {
            let rows = try scan.rows(entity)
            // If an identity has moved to another integer key, log its delete before its insert. Otherwise the delete
            // would be the newer change.
            if !rows.isEmpty { tables.append((entity, rows.filter { !$0.isThere } + rows.filter(\.isThere))) }
        }
    }

    func isCurrent(_ db: Database) throws -> Bool {
        try !SchemaFollower.hasChanged(db) && (Meta.integer(db, MetaKey.stamped) ?? 0) == stamped
    }

    /// Logs the rows that have not been touched since they were found.
    func log(_ db: Database, _ rows: [AuditedRow], of entity: Entity, _ report: inout AuditReport) throws {
        try readTouched(db)
        let logger = try AuditLogger(db, entity, resolver)
        for row in rows where !isTouched(row, entity) {
            guard try logger.log(row) else { continue }
            if row.isThere {
                report.appeared[entity.name, default: 0] += 1
            } else {
                report.vanished[entity.name, default: 0] += 1
            }
        }
        seen = try db.lastChange()
    }

    private func readTouched(_ db: Database) throws {
        guard try db.lastChange() > seen else { return }
        let read = try PreparedStatement(
            db, "SELECT e, r FROM \(InternalName.log) WHERE id > ?1 AND e <> 0 AND r IS NOT NULL")
        read.bind(1, seen)
        while try read.step() { touchedRows[read.integer(0), default: []].insert(read.integer(1)) }
        let named = tables.map(\.entity).filter { !$0.isKeyedByInteger }
        for (entity, states) in try AuditScan.states(db, named, resolver, after: seen) {
            touchedNames[entity, default: []].formUnion(states.keys)
        }
    }

    private func isTouched(_ row: AuditedRow, _ entity: Entity) -> Bool {
        switch row.name {
        case .row(let row): touchedRows[entity.id]?.contains(row) ?? false
        case .identity(let identity): touchedNames[entity.id]?.contains(identity) ?? false
        }
    }
}
