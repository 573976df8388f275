import Foundation
package import GRDB

/// What the audit found.
public struct AuditReport: Sendable, Equatable {
    /// Rows that were gone without a trace in the history, by table: they are logged as deleted now.
    public var vanished: [String: Int] = [:]
    /// Rows that were there without a trace in the history, by table: they are logged as inserted now.
    public var appeared: [String: Int] = [:]

    public var isClean: Bool { vanished.isEmpty && appeared.isEmpty }

    public init() {}
}

extension Store {
    /// Looks for rows that vanished or appeared without a trigger having run (a program that switched triggers off, a row
    /// displaced through a unique index on an expression), and puts them into the history.
    ///
    /// Reads every tracked row once.
    public func audit() throws -> AuditReport {
        try write(author: nil, context: "audit") { try Audit.run($0) }
    }

    /// Runs a user's DDL with capture kept whole: triggers are taken away and made anew in the same transaction.
    ///
    /// - Throws: ``StoreError`` when a statement fails; nothing of the script is kept then.
    public func alter(sql: String) throws {
        try write(author: nil, context: "alter") { db in
            try SchemaFollower.alter(db, sql: sql)
        }
    }
}

package enum Audit {
    package static func run(_ db: Database) throws -> AuditReport {
        var report = AuditReport()
        let catalog = try Catalog.load(db)
        let resolver = IdentityResolver(catalog: catalog, statements: StatementCache())
        for entity in catalog.entities {
            let (vanished, appeared) =
                entity.isKeyedByInteger
                ? try auditKeyed(db, entity) : try auditNatural(db, entity, resolver)
            if vanished > 0 { report.vanished[entity.name] = vanished }
            if appeared > 0 { report.appeared[entity.name] = appeared }
        }
        return report
    }

    /// The last thing that the unregistered part of the log says of each row of the entity: its kind by `r`.
    private static func pending(_ entity: Entity) -> String {
        """
        (SELECT r, k, max(id) FROM \(InternalName.log) WHERE e = \(entity.id) AND k IN (1, 2, 3)
        AND id > (SELECT value FROM \(InternalName.meta) WHERE key = '\(MetaKey.registered)') GROUP BY r)
        """
    }

    private static func auditKeyed(_ db: Database, _ entity: Entity) throws -> (Int, Int) {
        guard let key = entity.integerKey?.quotedName else { return (0, 0) }
        let side = InternalName.side(entity.id)
        let table = entity.name.quotedName
        // A declared identity of a vanished row can't be read any more; what its clock entry keeps is in `ident`.
        try db.execute(
            sql: """
                INSERT INTO \(InternalName.log)(e, r, k, t)
                SELECT \(entity.id), s.row, \(ChangeKind.delete.code), \(CaptureTriggers.now) FROM \(side) AS s
                LEFT JOIN \(pending(entity)) AS p ON p.r = s.row
                WHERE NOT EXISTS (SELECT 1 FROM \(table) AS t WHERE t.\(key) = s.row) AND p.k IS NOT \(ChangeKind.delete.code)
                """)
        let vanished = db.changesCount
        try db.execute(
            sql: """
                INSERT INTO \(InternalName.log)(e, r, k, t\(entity.columns.map { ", c\($0.slot)" }.joined()))
                SELECT \(entity.id), t.\(key), \(ChangeKind.insert.code), \
                \(CaptureTriggers.now)\(entity.columns.map { ", t.\($0.name.quotedName)" }.joined()) FROM \(table) AS t
                LEFT JOIN \(pending(entity)) AS p ON p.r = t.\(key)
                WHERE NOT EXISTS (SELECT 1 FROM \(side) AS s WHERE s.row = t.\(key)) AND p.k IS NULL
                """)
        return (vanished, db.changesCount)
    }

    private static func auditNatural(_ db: Database, _ entity: Entity, _ resolver: IdentityResolver) throws -> (Int, Int) {
        let columns = entity.identityColumns
        let names = columns.map(\.name.quotedName).joined(separator: ", ")
        var known = Set<StableID>()
        let side = try PreparedStatement(db, "SELECT ident FROM \(InternalName.side(entity.id))")
        while try side.step() { known.insert(StableID(bytes: side.blob(0))) }
        let registered = try Meta.integer(db, MetaKey.registered) ?? 0
        let last = try Int64.fetchOne(db, sql: "SELECT max(id) FROM \(InternalName.log)") ?? 0
        try LogReader(db, catalog: resolver.catalog).forEach(from: registered + 1, to: last + 1) { change in
            guard change.entity.id == entity.id else { return }
            let old = change.before.flatMap { before in
                try? resolver.identity(db, entity, localValues: columns.compactMap { c in before.values.first { $0.column.slot == c.slot }?.value })
            }
            if let old { known.remove(old) }
            let values = columns.compactMap { change.value(of: $0) }
            guard values.count == columns.count, let identity = try resolver.identity(db, entity, localValues: values) else { return }
            if change.kind == .delete { known.remove(identity) } else { known.insert(identity) }
        }
        let read = try PreparedStatement(db, "SELECT \(names) FROM \(entity.name.quotedName)")
        var appeared: [[Value]] = []
        while try read.step() {
            let values = columns.indices.map { read.value(Int32($0)) }
            guard let identity = try resolver.identity(db, entity, localValues: values) else { continue }
            if known.remove(identity) == nil { appeared.append(values) }
        }
        try logVanished(db, entity, known, resolver)
        let match = columns.enumerated().map { "\($1.name.quotedName) IS ?\($0 + 1)" }.joined(separator: " AND ")
        let insert = try PreparedStatement(
            db,
            """
            INSERT INTO \(InternalName.log)(e, k, t\(entity.columns.map { ", c\($0.slot)" }.joined()))
            SELECT \(entity.id), \(ChangeKind.insert.code), \
            \(CaptureTriggers.now)\(entity.columns.map { ", \($0.name.quotedName)" }.joined())
            FROM \(entity.name.quotedName) WHERE \(match)
            """)
        for values in appeared {
            for (index, value) in values.enumerated() { insert.bind(Int32(index + 1), value) }
            try insert.run()
        }
        return (known.count, appeared.count)
    }

    private static func logVanished(
        _ db: Database, _ entity: Entity, _ identities: Set<StableID>, _ resolver: IdentityResolver
    ) throws {
        let columns = entity.identityColumns
        let insert = try PreparedStatement(
            db,
            """
            INSERT INTO \(InternalName.log)(e, k, t\(columns.map { ", c\($0.slot)" }.joined()))
            VALUES (\(entity.id), \(ChangeKind.delete.code), \(CaptureTriggers.now)\(columns.indices.map { ", ?\($0 + 1)" }.joined()))
            """)
        for identity in identities.sorted(by: { $0.bytes.lexicographicallyPrecedes($1.bytes) }) {
            guard let values = try resolver.localValues(db, entity, identity) else { continue }
            for (index, value) in values.enumerated() { insert.bind(Int32(index + 1), value) }
            try insert.run()
        }
    }
}
