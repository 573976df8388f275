import GRDB

/// Restores remote changes that were applied to a table while a program was copying its rows into a new one, in
/// separate transactions. The program has not seen these changes, so the table that takes the name lacks them. They are
/// restored, because nobody meant to undo them.
///
/// Confined to its connection, in the caller's transaction.
struct StaleCopy {
    private let db: Database
    private let entity: Entity
    private let hashes: RowHashTable
    /// False if the hashes already include newer changes, so that it isn't known what the program may have copied.
    private let knowsBefore: Bool

    // MARK: New tables

    private static let key = "untracked_tables"
    private static let seenKey = "untracked_names"
    private static let copiesKey = "copies"

    /// An untracked table, as it was when the schema was last followed.
    private struct Seen: Codable, Equatable {
        /// The position of the log when it was first seen.
        var start: Int64
        var page: Int64
    }

    /// Records when untracked tables were first seen: one of them may take a tracked table's name.
    ///
    /// A table that is renamed keeps its root page, and one whose root page moves keeps its name: `VACUUM` moves root
    /// pages, and so does any `DROP TABLE` in a file with auto-vacuum. So both are recorded.
    static func noteTables(_ db: Database) throws {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT name, rootpage FROM main.sqlite_schema WHERE type = 'table' AND rootpage > 0
                AND name NOT GLOB '\(InternalName.prefix)*' AND name NOT GLOB 'sqlite_*'
                AND name NOT IN (SELECT name FROM \(InternalName.entities) WHERE state = 'tracked')
                """)
        let known = try tables(db)
        let seen = try seenTables(db)
        guard !rows.isEmpty || !known.isEmpty || !seen.isEmpty else { return }
        let last = try db.lastChange()
        let renamed = try renamedTables(db)
        var found: [Int64: Int64] = [:]
        var names: [String: Seen] = [:]
        for row in rows {
            let (name, page): (String, Int64) = (row["name"], row["rootpage"])
            let start = seen[name]?.start ?? renamed[page] ?? last
            found[page] = start
            names[name] = Seen(start: start, page: page)
        }
        if found != known { try Meta.set(db, key, try Catalog.encode(found)) }
        if names != seen { try Meta.set(db, seenKey, try Catalog.encode(names)) }
        let copies = try likelyCopies(db, found)
        if try copies != Self.copies(db) { try Meta.set(db, copiesKey, try Catalog.encode(copies)) }
    }

    /// Returns the position of the log when a table was first seen that has the columns of a tracked one, by entity. A
    /// program that drops a table and creates it again under its own name keeps the rows in another one meanwhile.
    private static func likelyCopies(_ db: Database, _ untracked: [Int64: Int64]) throws -> [Int64: Int64] {
        let inspector = TableInspector(db)
        let names = try Row.fetchAll(
            db, sql: "SELECT name, rootpage FROM main.sqlite_schema WHERE type = 'table' AND rootpage > 0")
        let entities = try Catalog.load(db).entities
        var copies: [Int64: Int64] = [:]
        for row in names {
            guard let start = untracked[row["rootpage"]], let table = try inspector.table(row["name"]) else { continue }
            let columns = Set(table.columns.map { $0.name.lowercased() })
            for entity in entities where entity.hasIdentity {
                let own = Set(entity.columns.map { $0.name.lowercased() })
                let keys = entity.integerKey.map { [$0] } ?? entity.identityColumns.map(\.name)
                guard keys.allSatisfy({ columns.contains($0.lowercased()) }),
                    own.intersection(columns).count * 2 >= own.count
                else { continue }
                // Use the newest one: an older one that looks alike was not made for this.
                copies[entity.id] = max(start, copies[entity.id] ?? start)
            }
        }
        return copies
    }

    private static func copies(_ db: Database) throws -> [Int64: Int64] {
        try Meta.text(db, copiesKey).map { try Catalog.decode([Int64: Int64].self, $0) } ?? [:]
    }

    /// Returns the position of the log when the table was first seen that may hold a copy of this entity's rows. Nil if
    /// there is none, or if it is no longer known what the rows held then.
    static func startOfCopy(_ db: Database, of entity: Int64) throws -> Int64? {
        guard let start = try copies(db)[entity], let position = try RowHashes.position(db, entity), position <= start
        else { return nil }
        return start
    }

    /// Returns a function that tells, by a table's name and root page, whether it existed and was untracked when the
    /// schema was last followed.
    static func knownTables(_ db: Database) throws -> (_ name: String, _ page: Int64) -> Bool {
        let seen = try seenTables(db)
        let renamed = try renamedTables(db)
        let movesPages = try Int64.fetchOne(db, sql: "PRAGMA main.auto_vacuum") ?? 0 != 0
        return { name, page in
            if let table = seen[name], movesPages || table.page == page { return true }
            return renamed[page] != nil
        }
    }

    /// Returns the tables that may have another name by now, by their root pages. Not those that still have theirs:
    /// their page may have moved, and be another table's.
    private static func renamedTables(_ db: Database) throws -> [Int64: Int64] {
        let names = try tableNames(db)
        let there = Set(try seenTables(db).filter { names.contains($0.key) }.map(\.value.page))
        return try tables(db).filter { !there.contains($0.key) }
    }

    /// Returns when those untracked tables were first seen that have lost their names since the schema was last
    /// followed.
    private static func startsOfVanishedTables(_ db: Database) throws -> Set<Int64> {
        let names = try tableNames(db)
        return Set(try seenTables(db).filter { !names.contains($0.key) }.map(\.value.start))
    }

    private static func tableNames(_ db: Database) throws -> Set<String> {
        Set(try String.fetchAll(db, sql: "SELECT name FROM main.sqlite_schema WHERE type = 'table'"))
    }

    /// Empty in a store that only earlier versions have used.
    private static func seenTables(_ db: Database) throws -> [String: Seen] {
        try Meta.text(db, seenKey).map { try Catalog.decode([String: Seen].self, $0) } ?? [:]
    }

    private static func tables(_ db: Database) throws -> [Int64: Int64] {
        try Meta.text(db, key).map { try Catalog.decode([Int64: Int64].self, $0) } ?? [:]
    }

    // MARK: Putting back

    /// - Parameter entities: The recreated entities, which have no triggers yet.
    static func putBack(_ db: Database, _ entities: Set<Int64>) throws {
        guard !entities.isEmpty else { return }
        let known = try renamedTables(db)
        // The root page of the new table may have moved when the former one was dropped. Then its columns tell, unless
        // the table that has them is still there under its own name: then it is a backup, and not the new table.
        let vanished = try startsOfVanishedTables(db)
        let lookalikes = try vanished.isEmpty ? [:] : copies(db).filter { vanished.contains($0.value) }
        let catalog = try Catalog.load(db)
        for entity in catalog.entities where entities.contains(entity.id) {
            let page = try Int64.fetchOne(
                db, sql: "SELECT rootpage FROM main.sqlite_schema WHERE type = 'table' AND name = ?",
                arguments: [entity.name])
            let starts = [
                page.flatMap { known[$0] } ?? lookalikes[entity.id], try RecreatedTables.start(db, entity.id),
            ].compactMap(\.self)
            guard let start = starts.min() else { continue }
            let changes = try remoteChanges(db, catalog, entity, after: start)
            guard !changes.isEmpty else { continue }
            let copy = try StaleCopy(db, entity, start)
            for change in changes { try copy.putBack(change) }
        }
    }

    /// The result of the changes of one row since then, and which part of it comes from remote transactions.
    private struct Change {
        var key: HashKey
        var row: Int64?
        /// The values of the identity columns.
        var identity: [Value]
        var isDeleted = false
        /// Whether a remote change was the last one to insert or delete the row.
        var isRemote = false
        /// Whether all columns are known.
        var isWhole = false
        var values: [Int: Value] = [:]
        /// The columns whose value is a remote one.
        var remote: Set<Int> = []
        /// The hashes of the values that the columns held before these, as far as the log since then tells.
        var former: [Int: Set<UInt64>] = [:]

        /// Whether there is something that the program may have missed.
        var isOutstanding: Bool { isRemote || !remote.isEmpty }

        init(_ key: HashKey, _ row: Int64?, _ identity: [Value]) {
            self.key = key
            self.row = row
            self.identity = identity
        }

        mutating func set(_ slot: Int, _ value: Value, isRemote: Bool) {
            if let old = values[slot] { former[slot, default: []].insert(ValueHash.of(old)) }
            values[slot] = value
            if isRemote { remote.insert(slot) } else { remote.remove(slot) }
        }

        /// Notes that the row was inserted or deleted, or that it has taken or left its key.
        mutating func begin(isDeleted: Bool, isRemote: Bool) {
            for (slot, value) in values { former[slot, default: []].insert(ValueHash.of(value)) }
            values = [:]
            remote = []
            isWhole = !isDeleted
            self.isDeleted = isDeleted
            self.isRemote = isRemote
        }
    }

    /// Returns the rows that remote transactions have changed, in the order in which they were first changed.
    ///
    /// A local change of the same row or column that is later counts instead: it was made in the table whose rows the
    /// program copies, or it was logged when an earlier rebuild was found. So a table that looks like a copy, but is a
    /// backup from long ago, brings nothing back that was deleted or overwritten since.
    private static func remoteChanges(
        _ db: Database, _ catalog: Catalog, _ entity: Entity, after start: Int64
    ) throws -> [Change] {
        let ranges = try Row.fetchAll(
            db,
            sql: """
                SELECT r, id FROM \(InternalName.log) WHERE e = 0 AND id > ? AND (c1 = ? OR c4 IS NOT NULL) ORDER BY id
                """, arguments: [start, TransactionAuthor.sync]
        ).map { (first: max($0["r"] as Int64, start + 1), mark: $0["id"] as Int64) }
        guard !ranges.isEmpty else { return [] }
        let log = try LogReader(db, catalog: catalog)
        func hashKeys(_ change: LogChange) -> (old: HashKey?, new: HashKey)? {
            guard change.entity.id == entity.id, let key = HashKey(change.entity, change.row, change.values) else {
                return nil
            }
            let old = change.before.flatMap { HashKey(change.entity, $0.row ?? change.row, $0.values) }
            return (old == key ? nil : old, key)
        }
        var touched = Set<HashKey>()
        for range in ranges {
            try log.forEach(from: range.first, to: range.mark) { change in
                guard let keys = hashKeys(change) else { return }
                touched.insert(keys.new)
                if let old = keys.old { touched.insert(old) }
            }
        }
        guard !touched.isEmpty else { return [] }
        var changes: [Change] = []
        var places: [HashKey: Int] = [:]
        var later = ranges[...]
        try log.forEach(from: start + 1, to: db.lastChange() + 1) { change in
            guard let keys = hashKeys(change) else { return }
            while let range = later.first, range.mark < change.id { later.removeFirst() }
            let isRemote = later.first.map { $0.first <= change.id } ?? false
            func update(
                _ key: HashKey, _ row: Int64?, _ values: [(column: EntityColumn, value: Value)],
                _ body: (inout Change) -> Void
            ) {
                guard touched.contains(key) else { return }
                let place = places[key] ?? changes.count
                if place == changes.count {
                    let identity = entity.identityColumns.map { column in
                        values.first { $0.column.slot == column.slot }?.value ?? .null
                    }
                    changes.append(Change(key, row, identity))
                    places[key] = place
                }
                body(&changes[place])
            }
            if let old = keys.old, let before = change.before {
                update(old, before.row ?? change.row, before.values) { $0.begin(isDeleted: true, isRemote: isRemote) }
            }
            update(keys.new, change.row, change.values) { row in
                let isNew = change.kind == .insert || keys.old != nil
                if change.kind == .delete { return row.begin(isDeleted: true, isRemote: isRemote) }
                if isNew {
                    row.begin(isDeleted: false, isRemote: isRemote)
                    // A row that only moves to another integer key comes without its other columns.
                    row.isWhole =
                        change.kind == .insert || change.entity.identityColumns.contains(where: change.isChanged)
                }
                // An update of a row that isn't there is part of a statement whose insert is logged after it.
                row.isDeleted = false
                for (column, value) in change.values where isNew || change.isChanged(column) {
                    row.set(column.slot, value, isRemote: isRemote)
                }
            }
        }
        return changes.filter(\.isOutstanding)
    }

    private init(_ db: Database, _ entity: Entity, _ start: Int64) throws {
        self.db = db
        self.entity = entity
        let position = try RowHashes.position(db, entity.id)
        knowsBefore = position.map { $0 <= start } ?? false
        if knowsBefore { try RowHashes.advance(db, through: start, only: [entity.id]) }
        hashes = try RowHashTable(db)
    }

    private func putBack(_ change: Change) throws {
        let match = entity.integerKey.map { "\($0.quotedName) = ?1" } ?? entity.identityMatch(from: 1)
        let key = entity.integerKey.map { _ in [change.row.map { Value.integer($0) } ?? .null] } ?? change.identity
        let columns = entity.columns
        let held = try first(
            "SELECT \(columns.map(\.name.quotedName).joined(separator: ", ")) FROM \(table) WHERE \(match)", key,
            count: columns.count)
        if change.isDeleted {
            guard change.isRemote, let held, try isStale(change, Array(zip(columns, held))) else { return }
            return try run("DELETE FROM \(table) WHERE \(match)", key)
        }
        guard let held else {
            // A row that existed before the copy and isn't in it was left out.
            guard change.isWhole, change.isRemote else { return }
            let known = columns.filter { change.values[$0.slot] != nil }
            let names = (entity.integerKey.map { [$0] } ?? []) + known.map(\.name)
            let values = (entity.integerKey.map { _ in key } ?? []) + known.map { change.values[$0.slot] ?? .null }
            let parameters = names.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
            return try run(
                """
                INSERT OR ABORT INTO \(table)(\(names.map(\.quotedName).joined(separator: ", ")))
                VALUES (\(parameters))
                """,
                values)
        }
        let stale = try zip(columns, held).filter { column, value in
            guard change.remote.contains(column.slot), change.values[column.slot] != value else { return false }
            return try isStale(change, [(column, value)])
        }.map(\.0)
        guard !stale.isEmpty else { return }
        let settings = stale.enumerated().map { "\($1.name.quotedName) = ?\(key.count + $0 + 1)" }
        try run(
            "UPDATE OR ABORT \(table) SET \(settings.joined(separator: ", ")) WHERE \(match)",
            key + stale.map { change.values[$0.slot] ?? .null })
    }

    private var table: String { entity.name.storeTable }

    /// Returns whether these columns of the row still hold former values. Other values were written by the program.
    private func isStale(_ change: Change, _ held: [(EntityColumn, Value)]) throws -> Bool {
        guard knowsBefore else { return true }
        let before = try hashes.row(entity.id, change.key)
        return held.allSatisfy { column, value in
            var former = change.former[column.slot] ?? []
            if let before { former.insert(before[column.slot]) }
            // The row never had another value, so the program's row under this key is another one.
            guard !former.isEmpty else { return true }
            return former.contains { hash in
                hash == ValueHash.unknown || hash == ValueHash.of(value)
                    || ValueHash.mayStandFor(hash, in: column, value)
            }
        }
    }

    private func first(_ sql: String, _ values: [Value], count: Int) throws -> [Value]? {
        let statement = try PreparedStatement(db, sql)
        for (index, value) in values.enumerated() { statement.bind(Int32(index + 1), value) }
        return try statement.first { row in (0..<count).map { row.value(Int32($0)) } }
    }

    /// Runs a statement. A row that the new table refuses stays as it is, and counts as the program's.
    private func run(_ sql: String, _ values: [Value]) throws {
        let statement = try PreparedStatement(db, sql)
        for (index, value) in values.enumerated() { statement.bind(Int32(index + 1), value) }
        do {
            try statement.run()
        } catch let error as StoreError where error.refusesRow {}
    }
}
