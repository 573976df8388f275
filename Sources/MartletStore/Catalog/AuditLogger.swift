import GRDB

/// Logs the findings of an audit for one table, in the caller's transaction. Confined to its connection.
final class AuditLogger {
    private let db: Database
    private let entity: Entity
    private let resolver: IdentityResolver
    private let insert: PreparedStatement
    private let delete: PreparedStatement
    private let logged: PreparedStatement?
    private let kept: PreparedStatement?
    private var formerRows: [Int64: FormerRows] = [:]

    init(_ db: Database, _ entity: Entity, _ resolver: IdentityResolver) throws {
        self.db = db
        self.entity = entity
        self.resolver = resolver
        let columns = entity.identityColumns
        let slots = entity.columns.map { ", c\($0.slot)" }.joined()
        let names = entity.columns.map { ", \($0.name.quotedName)" }.joined()
        let match = entity.integerKey.map { "\($0.quotedName) = ?1" } ?? entity.identityMatch(from: 1)
        insert = try PreparedStatement(
            db,
            """
            INSERT INTO \(InternalName.log)(e, r, k, t\(slots))
            SELECT \(entity.id), \(entity.integerKey?.quotedName ?? "NULL"), \(ChangeKind.insert.code), \
            \(CaptureTriggers.now)\(names) FROM \(entity.name.storeTable) WHERE \(match)
            """)
        delete = try PreparedStatement(
            db,
            """
            INSERT INTO \(InternalName.log)(e, r, k, t\(columns.map { ", c\($0.slot)" }.joined()))
            VALUES (\(entity.id), ?1, \(ChangeKind.delete.code), \(CaptureTriggers.now)\
            \(columns.indices.map { ", ?\($0 + 2)" }.joined()))
            """)
        guard entity.isKeyedByInteger, !columns.isEmpty else {
            (logged, kept) = (nil, nil)
            return
        }
        logged = try PreparedStatement(
            db,
            "SELECT \(columns.map { "c\($0.slot)" }.joined(separator: ", ")) FROM \(InternalName.log) WHERE id = ?1")
        kept = try PreparedStatement(db, "SELECT ident FROM \(InternalName.side(entity.id)) WHERE row = ?1")
    }

    /// - Returns: False if nothing was logged, because the row's identity is not known.
    func log(_ found: AuditedRow) throws -> Bool {
        switch found.name {
        case .row(let row) where found.isThere:
            insert.bind(1, row)
            try insert.run()
        case .row(let row): try logDelete(row, try declaredValues(row, found.image))
        case .identity where found.isThere:
            for (index, value) in found.values.enumerated() { insert.bind(Int32(index + 1), value) }
            try insert.run()
        case .identity(let identity):
            guard let values = try localValues(identity) else { return false }
            try logDelete(nil, values)
        }
        return true
    }

    /// Returns the declared identity of a deleted row: from the log, or from the side table, beside its clock.
    private func declaredValues(_ row: Int64, _ image: Int64?) throws -> [Value] {
        let columns = entity.identityColumns
        guard let logged, let kept else { return [] }
        if let image {
            logged.bind(1, image)
            if let values = try logged.first({ found in columns.indices.map { found.value(Int32($0)) } }) {
                return values
            }
        }
        kept.bind(1, row)
        let ident = try kept.first { $0.optionalBlob(0) } ?? nil
        return try ident.flatMap { try localValues(StableID(bytes: $0)) } ?? columns.map { _ in .null }
    }

    /// Returns the former values of the identity columns. The rows that they referred to may be gone too, or have
    /// another identity.
    private func localValues(_ identity: StableID) throws -> [Value]? {
        try resolver.localValues(entity, identity) { target, identity in
            guard target.isKeyedByInteger else { return try resolver.row(db, target, identity) }
            let former = try formerRows(of: target)
            return try former.touched[identity] ?? resolver.row(db, target, identity) ?? former.retired[identity]
        }
    }

    private func formerRows(of target: Entity) throws -> FormerRows {
        if let known = formerRows[target.id] { return known }
        let former = try FormerRows(db, target)
        formerRows[target.id] = former
        return former
    }

    private func logDelete(_ row: Int64?, _ values: [Value]) throws {
        delete.bind(1, optional: row)
        for (index, value) in values.enumerated() { delete.bind(Int32(index + 2), value) }
        try delete.run()
    }
}

/// The integer keys that rows have or had; these rows may have another ID by now, or be gone.
private struct FormerRows {
    /// By the ID as of the last stamping: rows that were touched since then, or that are gone. By now, another row may
    /// have the ID.
    private(set) var touched: [StableID: Int64] = [:]
    /// Rows that were deleted before that.
    private(set) var retired: [StableID: Int64] = [:]

    init(_ db: Database, _ entity: Entity) throws {
        let touched = try PreparedStatement(
            db,
            """
            SELECT s.ident, s.row FROM \(InternalName.side(entity.id)) AS s WHERE s.row IN (
              SELECT r FROM \(InternalName.log) WHERE id > ?1 AND e = \(entity.id))
            UNION SELECT s.ident, s.row FROM \(InternalName.side(entity.id)) AS s WHERE NOT EXISTS (
              SELECT 1 FROM \(entity.name.storeTable) AS t WHERE t.\(entity.integerKey?.quotedName ?? "rowid") = s.row)
            """)
        touched.bind(1, try Meta.integer(db, MetaKey.stamped) ?? 0)
        self.touched = try Self.rows(touched)
        let retired = try PreparedStatement(
            db, "SELECT ident, row FROM \(InternalName.retired) WHERE entity = \(entity.id) ORDER BY until")
        self.retired = try Self.rows(retired)
    }

    /// Returns the last row for each ID.
    private static func rows(_ read: PreparedStatement) throws -> [StableID: Int64] {
        var rows: [StableID: Int64] = [:]
        while try read.step() { rows[StableID(bytes: read.blob(0))] = read.integer(1) }
        return rows
    }
}
