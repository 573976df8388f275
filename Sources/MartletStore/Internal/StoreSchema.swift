import GRDB

/// The tables that Martlet keeps in a store, and their versions. The on-disk format is a contract: a change adds a step
/// to `migrate`, and never alters an earlier one.
enum StoreSchema {
    static let version: Int64 = 15

    /// The initial number of value columns in the log. `attach` adds more if a table needs them.
    static let initialSlots = 8

    static func create(_ db: Database) throws {
        let slots = (1...initialSlots).map { "c\($0)" }.joined(separator: ", ")
        // Not AUTOINCREMENT, which would write to a second b-tree with each change. IDs are never reused because the
        // newest transaction mark is never pruned (docs/decisions/0001).
        try db.execute(
            sql: """
                CREATE TABLE \(InternalName.log)(id INTEGER PRIMARY KEY, e INTEGER, r, k INTEGER, m, \
                t INTEGER, \(slots));
                CREATE TABLE \(InternalName.replaced)(e INTEGER, r, t INTEGER, \(slots));
                CREATE TABLE \(InternalName.meta)(
                  key TEXT PRIMARY KEY, value, origin BLOB, sequence INTEGER, at INTEGER) WITHOUT ROWID;
                CREATE TABLE \(InternalName.entities)(
                  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, former TEXT NOT NULL DEFAULT '[]',
                  state TEXT NOT NULL, reason TEXT, identity TEXT NOT NULL, old_values INTEGER NOT NULL DEFAULT 0,
                  unique_policy TEXT NOT NULL DEFAULT 'keepNewest',
                  names INTEGER NOT NULL DEFAULT 0, former_rules TEXT NOT NULL DEFAULT '[]',
                  chains INTEGER NOT NULL DEFAULT 0);
                CREATE TABLE \(InternalName.columns)(
                  entity INTEGER NOT NULL, slot INTEGER NOT NULL, name TEXT NOT NULL, former TEXT NOT NULL DEFAULT '[]',
                  since INTEGER NOT NULL, dropped INTEGER, added INTEGER, referred INTEGER NOT NULL DEFAULT 0,
                  PRIMARY KEY(entity, slot)) WITHOUT ROWID;
                CREATE TABLE \(InternalName.nodes)(id INTEGER PRIMARY KEY, uuid BLOB NOT NULL UNIQUE, name TEXT);
                CREATE TABLE \(InternalName.cursors)(
                  name TEXT PRIMARY KEY, position INTEGER NOT NULL, updated INTEGER NOT NULL) WITHOUT ROWID;
                CREATE TABLE \(InternalName.tombstones)(
                  entity INTEGER NOT NULL, ident BLOB NOT NULL, hlc INTEGER NOT NULL, node INTEGER NOT NULL,
                  PRIMARY KEY(entity, ident)) WITHOUT ROWID;
                CREATE TABLE \(InternalName.retired)(
                  entity INTEGER NOT NULL, row INTEGER NOT NULL, until INTEGER NOT NULL, ident BLOB NOT NULL,
                  PRIMARY KEY(entity, row, until)) WITHOUT ROWID;
                """)
        try createRecent(db)
        try createReserved(db)
        try RowHashes.createTable(db)
    }

    private static func createReserved(_ db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE \(InternalName.reserved)(
                  entity INTEGER NOT NULL, row INTEGER NOT NULL, PRIMARY KEY(entity, row)) WITHOUT ROWID
                """)
    }

    /// Creates the table for clocks of rows that have no integer key, in the order in which they were set; see
    /// ``RecentClocks``.
    private static func createRecent(_ db: Database) throws {
        try db.execute(
            sql: "CREATE TABLE \(InternalName.recent)(id INTEGER PRIMARY KEY, clocks BLOB NOT NULL)")
    }

    /// Creates the table as in formats 3 to 5, with a row for each clock. Without `hlc`, the row is gone.
    private static func createRecentRows(_ db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE \(InternalName.recent)(
                  id INTEGER PRIMARY KEY, entity INTEGER NOT NULL, ident BLOB NOT NULL, hlc INTEGER, node INTEGER, \
                attrs BLOB)
                """)
    }

    private static func gatherRecentRows(_ db: Database) throws {
        var clocks: [UInt8] = []
        let read = try PreparedStatement(
            db, "SELECT entity, ident, hlc, node, attrs FROM \(InternalName.recent) ORDER BY id")
        while try read.step() {
            if read.isNull(2) {
                ClockRecord.append(gone: read.blob(1), of: read.integer(0), to: &clocks)
            } else {
                ClockRecord.append(
                    read.blob(1), of: read.integer(0), time: read.integer(2), node: read.integer(3),
                    attributes: read.optionalBlob(4), to: &clocks)
            }
        }
        try db.execute(sql: "DROP TABLE \(InternalName.recent)")
        try createRecent(db)
        guard !clocks.isEmpty else { return }
        let append = try PreparedStatement(db, "INSERT INTO \(InternalName.recent)(clocks) VALUES (?1)")
        append.bind(1, blob: clocks)
        try append.run()
    }

    /// The version of the capture triggers' SQL, for changes that no program has to know of: older programs can use
    /// such a store. 1: the triggers know the default that REPLACE puts in place of NULL. 2: an update of a key records
    /// what its foreign-key actions have made of the row. 3: an update that displaces a row does, too.
    private static let triggerVersion: Int64 = 3

    /// Lets the next check of the schema create triggers again whose SQL has changed.
    ///
    /// An older program that follows a change of the schema creates its own triggers again, and knows of no version, or
    /// notes its own. So the version counts only for the schema that it was noted with.
    private static func checkTriggers(_ db: Database) throws {
        guard let schema = try Meta.integer(db, MetaKey.schemaVersion) else { return }
        let isOlder = try Meta.integer(db, MetaKey.triggerVersion) ?? 0 < triggerVersion
        guard try isOlder || Meta.integer(db, MetaKey.triggerSchema) != schema else { return }
        try Meta.set(db, MetaKey.schemaVersion, -1)
    }

    /// Notes that the triggers of this schema are those of this program.
    ///
    /// - Parameter schema: SQLite's version number of the schema. Nil if it will be looked at again.
    static func noteTriggers(_ db: Database, of schema: Int64?) throws {
        try Meta.set(db, MetaKey.triggerVersion, triggerVersion)
        try Meta.set(db, MetaKey.triggerSchema, schema)
    }

    /// Migrates an older store to this version, in the caller's transaction.
    static func migrate(_ db: Database, from version: Int64) throws {
        try checkReadable(version)
        try checkTriggers(db)
        guard version < Self.version else { return }
        // 2: tables whose identity is a blob or text have two triggers for inserts. They are created again with those
        // of format 9. 3: clocks by stable ID are collected before they go to their side tables.
        if version < 3 { try createRecentRows(db) }
        // 4: the identity rule of a table may change.
        if version < 4 {
            try db.execute(
                sql: """
                    ALTER TABLE \(InternalName.entities) ADD COLUMN names INTEGER NOT NULL DEFAULT 0;
                    ALTER TABLE \(InternalName.entities) ADD COLUMN former_rules TEXT NOT NULL DEFAULT '[]';
                    """)
        }
        // 5: the clock at which a column was added; 0 if rows had it from the beginning, NULL while it isn't known yet.
        if version < 5 {
            try db.execute(
                sql: """
                    ALTER TABLE \(InternalName.columns) ADD COLUMN added INTEGER;
                    UPDATE \(InternalName.columns) SET added = 0;
                    """)
        }
        // 6: the clocks of a transaction are one blob. A named value has three more columns, for what an offset has
        // beside its number.
        if version < 6 {
            try gatherRecentRows(db)
            for column in ["origin BLOB", "sequence INTEGER", "at INTEGER"] {
                try db.execute(sql: "ALTER TABLE \(InternalName.meta) ADD COLUMN \(column)")
            }
        }
        // 7: the newest clocks may be a named value, which older programs don't look for. 8: columns that one CHECK or
        // one foreign key reads form one register. Their triggers are created again with those of format 9. 9: a note
        // of a row that may be displaced has the time of its statement, and stable IDs that were assigned ahead of
        // their rows are listed. That changes the schema, so the next check of the schema creates the triggers again.
        if version < 9 {
            try db.execute(
                sql: """
                    DELETE FROM \(InternalName.replaced);
                    ALTER TABLE \(InternalName.replaced) ADD COLUMN t INTEGER;
                    """)
            try createReserved(db)
            try ReservedRows.migrate(db)
            try dropEmptyIdentities(db)
        }
        // 10: rows that are displaced through an index on an expression are noted. The schema is marked as not yet
        // known, so that the next check creates the triggers again. Value hashes of rows are added; the next check
        // takes them from the tables.
        if version < 10 {
            try Meta.set(db, MetaKey.schemaVersion, -1)
            try RowHashes.createTable(db)
        }
        // 11: identities may follow chains of references. Those of tables that are already attached don't: rows keep
        // their IDs. The update triggers tell a row that moves from one that is displaced; they are created again.
        if version < 11 {
            try Meta.set(db, MetaKey.schemaVersion, -1)
            try db.execute(
                sql: "ALTER TABLE \(InternalName.entities) ADD COLUMN chains INTEGER NOT NULL DEFAULT 0")
        }
        // 12: the update triggers mention the columns from which generated ones are computed; they are created again.
        // 13: so are the delete triggers, which notice that the row is gone that the deleted one was to replace, and
        // all triggers that read notes, which identify a row by its key and its identity. The list of tables whose rows
        // went unseen is a named value that older programs don't look for.
        if version < 13 { try Meta.set(db, MetaKey.schemaVersion, -1) }
        // 14: records whether a column is, or was, a reference. The next check of the schema marks the current ones.
        if version < 14 {
            try Meta.set(db, MetaKey.schemaVersion, -1)
            try db.execute(
                sql: "ALTER TABLE \(InternalName.columns) ADD COLUMN referred INTEGER NOT NULL DEFAULT 0")
        }
        // 15: the IDs that Martlet assigns ascend from the next change on. Rows that are there keep theirs, and so do
        // rows that were inserted and not stamped: the history has told their IDs. Older programs would assign others.
        if version < 15 { try Meta.set(db, MetaKey.firstAscendingChange, db.lastChange() + 1) }
        try Meta.set(db, MetaKey.format, Self.version)
    }

    /// Drops the records of deletes that identified no row.
    private static func dropEmptyIdentities(_ db: Database) throws {
        for table in [InternalName.tombstones, InternalName.retired] {
            try db.execute(sql: "DELETE FROM \(table) WHERE length(ident) = 0")
        }
    }

    static func checkReadable(_ version: Int64) throws {
        guard version <= Self.version else {
            throw StoreError(
                .newerVersion, "The store has format \(version); this program supports formats up to \(Self.version).",
                hint: "Update Martlet. Nothing was changed.")
        }
    }

    /// Returns how many columns a tracked table may have: each has one in the log, and SQLite allows 2,000 in a table
    /// (https://sqlite.org/limits.html), unless it was compiled for more.
    static func maxColumnCount(_ db: Database) throws -> Int {
        let others = try Int.fetchOne(
            db,
            sql: """
                SELECT max((SELECT count(*) FROM pragma_table_info(t) WHERE name NOT GLOB 'c[0-9]*'))
                FROM (SELECT ?1 AS t UNION SELECT ?2)
                """,
            arguments: [InternalName.log, InternalName.replaced])
        return 2000 - (others ?? 0)
    }

    /// Ensures that the log has columns up to `c<slot>`.
    static func ensureSlots(_ db: Database, upTo slot: Int) throws {
        for table in [InternalName.log, InternalName.replaced] {
            let columns = try String.fetchAll(db, sql: "SELECT name FROM pragma_table_info(?)", arguments: [table])
            let highest = columns.compactMap { $0.hasPrefix("c") ? Int($0.dropFirst()) : nil }.max() ?? 0
            guard highest < slot else { continue }
            for number in (highest + 1)...slot { try db.execute(sql: "ALTER TABLE \(table) ADD COLUMN c\(number)") }
        }
    }

    /// Creates the side table: the clocks and stable IDs of an entity's rows. `hlc` and `node` apply to the row's
    /// existence and to every column that `attrs` doesn't name.
    ///
    /// - Parameter indexesIDs: False if the caller first adds rows to which Martlet assigns IDs, and then calls this
    ///   again.
    static func createSide(_ db: Database, _ entity: Entity, indexesIDs: Bool = true) throws {
        let name = InternalName.side(entity.id)
        if entity.isKeyedByInteger {
            try db.execute(
                sql: """
                    CREATE TABLE IF NOT EXISTS \(name)(
                      row INTEGER PRIMARY KEY, ident BLOB, hlc INTEGER NOT NULL, node INTEGER NOT NULL, attrs BLOB)
                    """)
            if entity.identity == .hidden {
                guard indexesIDs else { return }
                try db.execute(sql: "CREATE UNIQUE INDEX IF NOT EXISTS \(name)_ident ON \(name)(ident)")
            } else if entity.keepsNames {
                try db.execute(sql: "CREATE INDEX IF NOT EXISTS \(name)_names ON \(name)(ident)")
            }
        } else {
            try db.execute(
                sql: """
                    CREATE TABLE IF NOT EXISTS \(name)(
                      ident BLOB PRIMARY KEY, hlc INTEGER NOT NULL, node INTEGER NOT NULL, attrs BLOB) WITHOUT ROWID
                    """)
        }
    }
}
