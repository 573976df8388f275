import GRDB

/// Logs the existing rows of a table as inserts, in the caller's transaction.
struct ExistingRows {
    /// The SQL function that is called for each row, to report progress.
    private static let counter = "martlet_attach_count"

    let db: Database
    let catalog: Catalog
    let tally: RowTally?

    /// Logs all rows of a table that is being attached.
    func logAll(_ entity: Entity) throws {
        _ = try copy(entity, where: [])
    }

    /// Logs the unpublished rows of a tracked table: rows that still have the clock from when the table was attached,
    /// and whose insert isn't waiting to be stamped.
    ///
    /// A row whose integer key was changed since the last stamping has no clock under its new key, and counts as
    /// unpublished: it is republished as if it had been written now.
    /// - Returns: The number of these rows.
    func logUnpublished(_ entity: Entity) throws -> Int {
        try RecentClocks.flush(db)
        guard entity.isKeyedByInteger, let key = entity.integerKey?.quotedName else { return try logUnnumbered(entity) }
        let stamped = try Meta.integer(db, MetaKey.stamped) ?? 0
        return try copy(
            entity,
            where: [
                """
                NOT EXISTS (SELECT 1 FROM \(InternalName.side(entity.id)) AS s
                WHERE s.row = t.\(key) AND s.hlc <> 0)
                """,
                """
                t.\(key) NOT IN (SELECT l.r FROM \(InternalName.log) AS l
                WHERE l.id > \(stamped) AND l.e = \(entity.id) AND l.k = \(ChangeKind.insert.code)
                AND l.r IS NOT NULL)
                """,
            ])
    }

    private func copy(_ entity: Entity, where conditions: [String]) throws -> Int {
        let slots = entity.columns.map { ", c\($0.slot)" }.joined()
        let values = entity.columns.map { ", t.\($0.name.quotedName)" }.joined()
        return try counted(entity) { counter in
            let all = conditions + counter
            try db.execute(
                sql: """
                    INSERT INTO \(InternalName.log)(e, r, k, t\(slots))
                    SELECT \(entity.id), \(entity.integerKey.map { "t.\($0.quotedName)" } ?? "NULL"), \
                    \(ChangeKind.insert.code), \(CaptureTriggers.now)\(values) FROM \(entity.name.storeTable) AS t \
                    \(all.isEmpty ? "" : "WHERE " + all.joined(separator: " AND "))
                    """)
            return db.changesCount
        }
    }

    /// - Parameter body: Called with the condition that counts each row, or with none if progress isn't wanted.
    private func counted(_ entity: Entity, _ body: ([String]) throws -> Int) throws -> Int {
        guard let tally else { return try body([]) }
        try begin(tally, .logging, entity)
        // Not pure: SQLite would call a pure function without arguments once, not for each row.
        let function = DatabaseFunction(Self.counter, argumentCount: 0, pure: false) { _ in
            tally.count()
            return 1
        }
        db.add(function: function)
        defer { db.remove(function: function) }
        return try body(["\(Self.counter)()"])
    }

    func begin(_ tally: RowTally, _ step: AttachProgress.Step, _ entity: Entity) throws {
        let count = try Int.fetchOne(db, sql: "SELECT count(*) FROM \(entity.name.storeTable)") ?? 0
        tally.begin(step, entity.name, rowCount: count)
    }

    /// Logs the unpublished rows of a table whose clocks are stored by stable ID.
    private func logUnnumbered(_ entity: Entity) throws -> Int {
        let resolver = IdentityResolver(catalog: catalog, statements: StatementCache())
        let waiting = try waitingInserts(entity, resolver)
        let columns = entity.columns
        let places = entity.identityColumns.compactMap { named in columns.firstIndex { $0.slot == named.slot } }
        let read = try PreparedStatement(
            db,
            "SELECT \(columns.map(\.name.quotedName).joined(separator: ", ")) FROM \(entity.name.storeTable)")
        let told = try PreparedStatement(
            db,
            "SELECT 1 FROM \(InternalName.side(entity.id)) WHERE ident = ?1 AND hlc <> 0")
        let log = try PreparedStatement(
            db,
            """
            INSERT INTO \(InternalName.log)(e, k, t\(columns.map { ", c\($0.slot)" }.joined()))
            VALUES (\(entity.id), \(ChangeKind.insert.code), \(CaptureTriggers.now)\
            \(columns.indices.map { ", ?\($0 + 1)" }.joined()))
            """)
        if let tally { try begin(tally, .logging, entity) }
        var count = 0
        while try read.step() {
            tally?.count()
            let values = places.map { read.value(Int32($0)) }
            guard let identity = try resolver.identity(db, entity, localValues: values), !waiting.contains(identity)
            else { continue }
            told.bind(1, blob: identity.bytes)
            if try told.first({ _ in true }) ?? false { continue }
            for index in columns.indices { log.bind(Int32(index + 1), read.value(Int32(index))) }
            try log.run()
            count += 1
        }
        return count
    }

    /// Returns the rows whose insert is in the history, but has no clock yet.
    private func waitingInserts(_ entity: Entity, _ resolver: IdentityResolver) throws -> Set<StableID> {
        let columns = entity.identityColumns
        let read = try PreparedStatement(
            db,
            """
            SELECT \(columns.map { "c\($0.slot)" }.joined(separator: ", ")) FROM \(InternalName.log)
            WHERE id > ?1 AND e = ?2 AND k = \(ChangeKind.insert.code)
            """)
        read.bind(1, try Meta.integer(db, MetaKey.stamped) ?? 0)
        read.bind(2, entity.id)
        var identities: Set<StableID> = []
        while try read.step() {
            let values = columns.indices.map { read.value(Int32($0)) }
            if let identity = try resolver.identity(db, entity, localValues: values) { identities.insert(identity) }
        }
        return identities
    }
}
