package import GRDB

/// Translates between the local keys of rows in this file and their stable IDs.
///
/// Confined to its connection.
package final class IdentityResolver {
    package let catalog: Catalog
    private let statement: StatementCache
    /// Entities whose IDs began to be looked up after the catalog was read.
    private var begun = Set<Int64>()
    private let encoding: TextEncoding
    /// The IDs that rows will get which aren't stamped yet, if these count.
    private let unstamped: UnstampedInserts?
    private lazy var unstampedRows = unstamped?.rows() ?? [:]
    /// The rows whose columns are being looked at.
    private var path = Set<RowKey>()

    package init(
        catalog: Catalog, statements: StatementCache, encoding: TextEncoding = .utf8,
        unstamped: UnstampedInserts? = nil
    ) {
        self.catalog = catalog
        self.unstamped = unstamped
        self.encoding = encoding
        statement = statements
    }

    /// Returns the stable ID of the row with this integer key. Also of a deleted row, if its ID was kept.
    package func identity(_ db: Database, _ entity: Entity, row: Int64) throws -> StableID? {
        if let assigned = unstamped?.latest(entity.id, row, through: .max) { return assigned }
        if recordsNames(entity), let kept = try keptIdentity(db, entity, row: row) { return kept }
        if case .columns = entity.identity {
            guard entity.integerKey != nil else { return nil }
            if let declared = try declaredIdentity(db, entity, row: row) { return declared }
            // The row may not have arrived, but another one refers to it.
            if let kept = try keptIdentity(db, entity, row: row) { return kept }
        }
        return try retired(db, entity, row: row, after: 0)
    }

    /// Returns the stable ID that the identity columns of the row form. Nil also if they form none: a column may be
    /// NULL, or its references may lead back to the row itself.
    package func declaredIdentity(_ db: Database, _ entity: Entity, row: Int64) throws -> StableID? {
        guard let key = entity.integerKey else { return nil }
        let columns = entity.identityColumns
        let place = RowKey(entity: entity.id, row: row)
        guard !columns.isEmpty, path.insert(place).inserted else { return nil }
        defer { path.remove(place) }
        let find = try statement(
            db,
            """
            SELECT \(columns.map(\.name.quotedName).joined(separator: ", ")) FROM \(entity.name.storeTable)
            WHERE \(key.quotedName) = ?1
            """)
        find.bind(1, row)
        let values = try find.first { found in columns.indices.map { found.value(Int32($0)) } }
        return try values.flatMap { try identity(db, entity, localValues: $0) }
    }

    /// Returns the ID stored for the integer key.
    package func keptIdentity(_ db: Database, _ entity: Entity, row: Int64) throws -> StableID? {
        let find = try statement(db, "SELECT ident FROM \(InternalName.side(entity.id)) WHERE row = ?1")
        find.bind(1, row)
        return try find.first { $0.optionalBlob(0).map(StableID.init(bytes:)) } ?? nil
    }

    /// Returns whether rows are found by their stored IDs.
    package func recordsNames(_ entity: Entity) -> Bool { entity.recordsNames || begun.contains(entity.id) }

    /// Records that the IDs of the entity's rows are looked up from now on.
    package func noteRecorded(_ entity: Entity) { begun.insert(entity.id) }

    /// Returns the ID that the row had before it was deleted by `change` or a later change.
    package func retired(_ db: Database, _ entity: Entity, row: Int64, after change: Int64, newest: Bool = true) throws
        -> StableID?
    {
        let order = newest ? "DESC" : "ASC"
        let find = try statement(
            db,
            """
            SELECT ident FROM \(InternalName.retired) WHERE entity = ?1 AND row = ?2 AND until >= ?3
            ORDER BY until \(order) LIMIT 1
            """)
        find.bind(1, entity.id)
        find.bind(2, row)
        find.bind(3, change)
        return try find.first { StableID(bytes: $0.blob(0)) }
    }

    /// Returns the IDs of deleted rows that had this integer key, newest first.
    package func retired(_ db: Database, _ entity: Entity, row: Int64, limit: Int) throws -> [StableID] {
        let find = try statement(
            db,
            "SELECT ident FROM \(InternalName.retired) WHERE entity = ?1 AND row = ?2 ORDER BY until DESC LIMIT ?3")
        find.bind(1, entity.id)
        find.bind(2, row)
        find.bind(3, Int64(limit))
        var names: [StableID] = []
        while try find.step() { names.append(StableID(bytes: find.blob(0))) }
        return names
    }

    /// Returns the stable ID that the identity columns form with their values in this file. Integer foreign keys become
    /// references. Nil if the target of a reference is unknown, or if a value is NULL: such rows can't be told apart.
    package func identity(_ db: Database, _ entity: Entity, localValues: [Value]) throws -> StableID? {
        // An ID needs values.
        guard !localValues.isEmpty, localValues.count == entity.identityColumns.count, !localValues.contains(.null)
        else { return nil }
        var values = localValues
        for (index, column) in entity.identityColumns.enumerated() {
            guard let target = column.reference, let row = column.referredRow(values[index]) else { continue }
            guard let entity = catalog[target], let identity = try identity(db, entity, row: row) else { return nil }
            values[index] = .reference(Reference(entity: target, identity: identity))
        }
        return StableID(columns: values, mayBePart: entity.integerKey != nil)
    }

    /// Returns the integer key of the row with this stable ID, if the row exists here.
    package func row(_ db: Database, _ entity: Entity, _ identity: StableID) throws -> Int64? {
        guard let key = entity.integerKey else { return nil }
        if let row = unstampedRows[entity.id]?[identity] { return row }
        let side = InternalName.side(entity.id)
        let records = recordsNames(entity)
        if records {
            let find = try statement(
                db,
                """
                SELECT s.row FROM \(side) AS s JOIN \(entity.name.storeTable) AS t
                ON t.\(key.quotedName) = s.row WHERE s.ident = ?1
                """)
            find.bind(1, blob: identity.bytes)
            if let row = try find.first({ $0.integer(0) }) { return row }
        }
        guard case .columns = entity.identity, let values = try localValues(db, entity, identity) else { return nil }
        // A row with another stored ID is another row. One without a stored ID was inserted just now.
        let unnamed = records ? " AND NOT EXISTS (SELECT 1 FROM \(side) AS s WHERE s.row = t.\(key.quotedName))" : ""
        let find = try statement(
            db,
            """
            SELECT \(key.quotedName) FROM \(entity.name.storeTable) AS t
            WHERE \(entity.identityMatch(from: 1))\(unnamed)
            """)
        for (index, value) in values.enumerated() { find.bind(Int32(index + 1), value) }
        return try find.first { $0.integer(0) }
    }

    /// Returns the values of the identity columns in this file for the row with this stable ID. Nil if the target of a
    /// reference doesn't exist here, if the ID doesn't belong to this entity, or if this file can't hold one of its
    /// values.
    package func localValues(_ db: Database, _ entity: Entity, _ identity: StableID) throws -> [Value]? {
        guard let values = try formerValues(db, entity, identity),
            zip(entity.identityColumns, values).allSatisfy({ $0.takes($1, asName: true) })
        else { return nil }
        return values
    }

    /// Returns the values for an ID that the row may have had when its columns had other types.
    func formerValues(_ db: Database, _ entity: Entity, _ identity: StableID) throws -> [Value]? {
        try localValues(entity, identity) { try row(db, $0, $1) }
    }

    /// - Parameter row: Finds the integer key of a reference's target.
    package func localValues(
        _ entity: Entity, _ identity: StableID, _ row: (Entity, StableID) throws -> Int64?
    ) throws -> [Value]? {
        var values = try identity.values()
        let columns = entity.identityColumns
        guard values.count == columns.count, values.allSatisfy(encoding.holds) else { return nil }
        for index in values.indices {
            guard case .reference(let reference) = values[index] else { continue }
            guard let target = catalog[reference.entity], let row = try row(target, reference.identity) else {
                return nil
            }
            values[index] = columns[index].holding(row)
        }
        return values
    }
}
