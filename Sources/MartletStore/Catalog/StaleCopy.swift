import GRDB

/// Restores remote changes that were applied to a table while a program was copying its rows into a new one, in
/// separate transactions. The program has not seen these changes, so the table that takes the name lacks them. They are
/// restored, because nobody meant to undo them.
///
/// Confined to its connection, in the caller's transaction.
struct StaleCopy {
    private let db: Database
    private let entity: Entity
    private let prints: PrintTable
    /// False if the hashes already include newer changes, so that it isn't known what the program may have copied.
    private let knowsBefore: Bool

    // MARK: New tables

    private static let key = "untracked_tables"
    private static let copiesKey = "copies"

    /// Records when untracked tables were first seen, by their root pages: one of them may take a tracked table's name.
    static func noteTables(_ db: Database) throws {
        let pages = try Int64.fetchAll(
            db,
            sql: """
                SELECT rootpage FROM main.sqlite_schema WHERE type = 'table' AND rootpage > 0
                AND name NOT GLOB '\(InternalName.prefix)*' AND name NOT GLOB 'sqlite_*'
                AND name NOT IN (SELECT name FROM \(InternalName.entities) WHERE state = 'tracked')
                """)
        let known = try tables(db)
        guard !pages.isEmpty || !known.isEmpty else { return }
        let last = try RowPrints.lastChange(db)
        let found = Dictionary(pages.map { ($0, known[$0] ?? last) }, uniquingKeysWith: min)
        if found != known { try Meta.set(db, key, try Catalog.encode(found)) }
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
        guard let start = try copies(db)[entity], let position = try RowPrints.position(db, entity), position <= start
        else { return nil }
        return start
    }

    /// Returns the root pages of the untracked tables that existed when the schema was last followed.
    static func knownTables(_ db: Database) throws -> Set<Int64> { Set(try tables(db).keys) }

    private static func tables(_ db: Database) throws -> [Int64: Int64] {
        try Meta.text(db, key).map { try Catalog.decode([Int64: Int64].self, $0) } ?? [:]
    }

    // MARK: Putting back

    /// - Parameter entities: The recreated entities, which have no triggers yet.
    static func putBack(_ db: Database, _ entities: Set<Int64>) throws {
        guard !entities.isEmpty else { return }
        let known = try tables(db)
        let catalog = try Catalog.load(db)
        for entity in catalog.entities where entities.contains(entity.id) {
            let page = try Int64.fetchOne(
                db, sql: "SELECT rootpage FROM main.sqlite_schema WHERE type = 'table' AND name = ?",
                arguments: [entity.name])
            let starts = [page.flatMap { known[$0] }, try RemadeTables.start(db, entity.id)].compactMap(\.self)
            guard let start = starts.min() else { continue }
            let changes = try remoteChanges(db, catalog, entity, after: start)
            guard !changes.isEmpty else { continue }
            let copy = try StaleCopy(db, entity, start)
            for change in changes { try copy.putBack(change) }
        }
    }

    /// The result of remote transactions for one row since then.
    private struct Change {
        var key: PrintKey
        var row: Int64?
        var isDeleted = false
        /// Whether all columns are known.
        var isWhole = false
        var values: [Int: Value] = [:]
    }

    /// Returns the changes, in the order in which rows were first changed.
    private static func remoteChanges(
        _ db: Database, _ catalog: Catalog, _ entity: Entity, after start: Int64
    ) throws -> [Change] {
        let ranges = try Row.fetchAll(
            db,
            sql: """
                SELECT r, id FROM \(InternalName.log) WHERE e = 0 AND id > ? AND (c1 = ? OR c4 IS NOT NULL) ORDER BY id
                """, arguments: [start, TransactionAuthor.sync])
        var changes: [Change] = []
        var places: [PrintKey: Int] = [:]
        let log = try LogReader(db, catalog: catalog)
        for range in ranges {
            try log.forEach(from: max(range["r"], start + 1), to: range["id"]) { change in
                guard change.entity.id == entity.id, let key = PrintKey(change.entity, change.row, change.values) else {
                    return
                }
                func place(_ key: PrintKey, _ row: Int64?) -> Int {
                    if let place = places[key] { return place }
                    places[key] = changes.count
                    changes.append(Change(key: key, row: row))
                    return changes.count - 1
                }
                let old = change.before.flatMap { PrintKey(change.entity, $0.row ?? change.row, $0.values) }
                if let old, old != key {
                    changes[place(old, change.before?.row ?? change.row)] =
                        Change(key: old, row: change.before?.row ?? change.row, isDeleted: true)
                }
                let index = place(key, change.row)
                var row = changes[index]
                let isNew = change.kind == .insert || (old.map { $0 != key } ?? false)
                if change.kind == .delete || isNew || row.isDeleted { row = Change(key: key, row: change.row) }
                row.isDeleted = change.kind == .delete
                row.isWhole = row.isWhole || isNew
                for (column, value) in change.values { row.values[column.slot] = value }
                changes[index] = row
            }
        }
        return changes
    }

    private init(_ db: Database, _ entity: Entity, _ start: Int64) throws {
        self.db = db
        self.entity = entity
        let position = try RowPrints.position(db, entity.id)
        knowsBefore = position.map { $0 <= start } ?? false
        if knowsBefore { try RowPrints.fold(db, through: start, only: [entity.id]) }
        prints = try PrintTable(db)
    }

    private func putBack(_ change: Change) throws {
        let match = entity.integerKey.map { "\($0.quotedName) = ?1" } ?? entity.identityMatch(from: 1)
        let key = entity.integerKey.map { _ in [change.row.map { Value.integer($0) } ?? .null] } ?? keyValues(change)
        let columns = entity.columns
        let held = try first(
            "SELECT \(columns.map(\.name.quotedName).joined(separator: ", ")) FROM \(table) WHERE \(match)", key,
            count: columns.count)
        if change.isDeleted {
            guard let held, try isStale(change.key, Array(zip(columns, held))) else { return }
            return try run("DELETE FROM \(table) WHERE \(match)", key)
        }
        guard let held else {
            // A row that existed before the copy and isn't in it was left out.
            guard change.isWhole else { return }
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
            try change.values[column.slot].map { try $0 != value && isStale(change.key, [(column, value)]) } ?? false
        }.map(\.0)
        guard !stale.isEmpty else { return }
        let settings = stale.enumerated().map { "\($1.name.quotedName) = ?\(key.count + $0 + 1)" }
        try run(
            "UPDATE OR ABORT \(table) SET \(settings.joined(separator: ", ")) WHERE \(match)",
            key + stale.map { change.values[$0.slot] ?? .null })
    }

    private var table: String { entity.name.quotedName }

    private func keyValues(_ change: Change) -> [Value] {
        entity.identityColumns.map { change.values[$0.slot] ?? .null }
    }

    /// Returns whether these columns of the row still hold their former values. Other values were written by the
    /// program.
    private func isStale(_ key: PrintKey, _ held: [(EntityColumn, Value)]) throws -> Bool {
        guard knowsBefore, let before = try prints.row(entity.id, key) else { return true }
        return held.allSatisfy { column, value in
            let print = before[column.slot]
            return print == ValuePrint.unknown || print == ValuePrint.of(value)
                || ValuePrint.mayStandFor(print, in: column, value)
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
