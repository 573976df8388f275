package import GRDB

/// Compares the rows of tracked tables with what is registered and logged of them.
package enum Audit {
    /// - Parameter only: the entities to look at. Nil: all.
    package static func run(_ db: Database, only: Set<Int64>? = nil) throws -> AuditReport {
        try RecentClocks.fold(db)
        var report = AuditReport()
        let catalog = try Catalog.load(db)
        let resolver = IdentityResolver(catalog: catalog, statements: StatementCache())
        for entity in catalog.entities where only?.contains(entity.id) ?? true {
            let (vanished, appeared) =
                entity.isKeyedByInteger
                ? try auditKeyed(db, entity, resolver) : try auditNatural(db, entity, resolver)
            if vanished > 0 { report.vanished[entity.name] = vanished }
            if appeared > 0 { report.appeared[entity.name] = appeared }
        }
        return report
    }

    /// The last thing that the unregistered part of the log says of each row of the entity: its kind by `r`. A row that
    /// moved to another key is gone from this one.
    private static func pending(_ entity: Entity) -> String {
        """
        (SELECT r, CASE k WHEN \(ChangeKind.Mark.before) THEN \(ChangeKind.delete.code) ELSE k END AS k, max(id)
        FROM \(InternalName.log) WHERE e = \(entity.id) AND k IN (1, 2, 3, 4)
        AND id > (SELECT value FROM \(InternalName.meta) WHERE key = '\(MetaKey.registered)') GROUP BY r)
        """
    }

    private static func auditKeyed(_ db: Database, _ entity: Entity, _ resolver: IdentityResolver) throws -> (Int, Int)
    {
        guard let key = entity.integerKey?.quotedName else { return (0, 0) }
        let side = InternalName.side(entity.id)
        let table = entity.name.quotedName
        let delete = ChangeKind.delete.code
        let missing = try Int64.fetchAll(
            db,
            sql: """
                SELECT row FROM (
                  SELECT s.row FROM \(side) AS s LEFT JOIN \(pending(entity)) AS p ON p.r = s.row WHERE p.k IS NOT \(delete)
                  AND NOT \(ReservedRows.isReserved(entity))
                  UNION SELECT r FROM \(pending(entity)) WHERE k <> \(delete)) AS expected
                WHERE NOT EXISTS (SELECT 1 FROM \(table) AS t WHERE t.\(key) = expected.row) ORDER BY row
                """)
        let found = try Int64.fetchAll(
            db,
            sql: """
                SELECT t.\(key) FROM \(table) AS t LEFT JOIN \(pending(entity)) AS p ON p.r = t.\(key)
                WHERE CASE WHEN p.k IS NULL THEN NOT EXISTS (
                  SELECT 1 FROM \(side) AS s WHERE s.row = t.\(key) AND NOT \(ReservedRows.isReserved(entity)))
                ELSE p.k = \(delete) END ORDER BY 1
                """)
        try logVanished(db, entity, rows: missing, resolver)
        let insert = try db.makeStatement(
            sql: """
                INSERT INTO \(InternalName.log)(e, r, k, t\(entity.columns.map { ", c\($0.slot)" }.joined()))
                SELECT \(entity.id), \(key), \(ChangeKind.insert.code), \
                \(CaptureTriggers.now)\(entity.columns.map { ", \($0.name.quotedName)" }.joined()) FROM \(table) WHERE \(key) = ?
                """)
        for row in found { try insert.execute(arguments: [row]) }
        return (missing.count, found.count)
    }

    private static func logVanished(
        _ db: Database, _ entity: Entity, rows: [Int64], _ resolver: IdentityResolver
    ) throws {
        guard !rows.isEmpty else { return }
        let columns = entity.identityColumns
        let insert = try PreparedStatement(
            db,
            """
            INSERT INTO \(InternalName.log)(e, r, k, t\(columns.map { ", c\($0.slot)" }.joined()))
            VALUES (\(entity.id), ?1, \(ChangeKind.delete.code), \(CaptureTriggers.now)\(columns.indices.map { ", ?\($0 + 2)" }.joined()))
            """)
        // A declared identity of a row that is gone stands in the log, or is kept beside its clock.
        let logged = try PreparedStatement(
            db,
            """
            SELECT k\(columns.map { ", c\($0.slot)" }.joined()) FROM \(InternalName.log) WHERE e = \(entity.id) AND r = ?1
            AND id > (SELECT value FROM \(InternalName.meta) WHERE key = '\(MetaKey.registered)')
            AND k IN (1, 2) ORDER BY id DESC LIMIT 1
            """)
        let kept = try PreparedStatement(db, "SELECT ident FROM \(InternalName.side(entity.id)) WHERE row = ?1")
        for row in rows {
            insert.bind(1, row)
            logged.bind(1, row)
            kept.bind(1, row)
            var values: [Value]?
            if !columns.isEmpty {
                values = try logged.first { found in columns.indices.map { found.value(Int32($0 + 1)) } }
                if values == nil, let ident = try kept.first({ $0.optionalBlob(0) }) ?? nil {
                    values = try resolver.localValues(db, entity, StableID(bytes: ident))
                }
            }
            for index in columns.indices { insert.bind(Int32(index + 2), values?[index] ?? .null) }
            try insert.run()
        }
    }

    private static func auditNatural(_ db: Database, _ entity: Entity, _ resolver: IdentityResolver) throws -> (
        Int, Int
    ) {
        let columns = entity.identityColumns
        let names = columns.map(\.name.quotedName).joined(separator: ", ")
        var known = Set<StableID>()
        let side = try PreparedStatement(db, "SELECT ident FROM \(InternalName.side(entity.id))")
        while try side.step() { known.insert(StableID(bytes: side.blob(0))) }
        let registered = try Meta.integer(db, MetaKey.registered) ?? 0
        let last = try Int64.fetchOne(db, sql: "SELECT max(id) FROM \(InternalName.log)") ?? 0
        try LogReader(db, catalog: resolver.catalog).forEach(from: registered + 1, to: last + 1) { change in
            guard change.entity.id == entity.id else { return }
            let old = try change.before.flatMap { before in
                try resolver.identity(
                    db, entity,
                    localValues: columns.compactMap { c in before.values.first { $0.column.slot == c.slot }?.value })
            }
            if let old { known.remove(old) }
            let values = columns.compactMap { change.value(of: $0) }
            guard values.count == columns.count, let identity = try resolver.identity(db, entity, localValues: values)
            else { return }
            if change.kind == .delete { known.remove(identity) } else { known.insert(identity) }
        }
        let read = try PreparedStatement(db, "SELECT \(names) FROM \(entity.name.quotedName)")
        var appeared: [[Value]] = []
        while try read.step() {
            let values = columns.indices.map { read.value(Int32($0)) }
            guard let identity = try resolver.identity(db, entity, localValues: values) else { continue }
            if known.remove(identity) == nil { appeared.append(values) }
        }
        let vanished = try logVanished(db, entity, known, resolver)
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
        return (vanished, appeared.count)
    }

    private static func logVanished(
        _ db: Database, _ entity: Entity, _ identities: Set<StableID>, _ resolver: IdentityResolver
    ) throws -> Int {
        var count = 0
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
            count += 1
        }
        return count
    }
}
