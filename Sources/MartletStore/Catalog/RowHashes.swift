import GRDB

/// Hashes of the values that rows held at one position of the log. The log from there on tells what the rows should
/// hold now. So a row that changed while no trigger ran is found by its values, even if the history doesn't go back to
/// its insert (docs/decisions/0030).
///
/// Confined to its connection, in the caller's transaction.
enum RowHashes {
    /// The key in `_martlet_meta` of the log position up to which an entity's hashes go. Absent if it has none.
    private static func key(_ entity: Int64) -> String { "printed:\(entity)" }

    static func position(_ db: Database, _ entity: Int64) throws -> Int64? { try Meta.integer(db, key(entity)) }

    static func setPosition(_ db: Database, _ entity: Int64, _ id: Int64) throws { try Meta.set(db, key(entity), id) }

    private static func initialKey(_ entity: Int64, _ slot: Int) -> String { "initial:\(entity):\(slot)" }

    /// Returns the hash of the value that existing rows got in a column that was added later, unless the log has
    /// another one.
    static func initial(_ db: Database, _ entity: Int64, slot: Int) throws -> UInt64? {
        try Meta.integer(db, initialKey(entity, slot)).map { UInt64(bitPattern: $0) }
    }

    /// - Parameter sql: The SQL of the column's default.
    static func setInitial(_ db: Database, _ entity: Int64, slot: Int, _ sql: String) throws {
        let value = try PreparedStatement(db, "SELECT \(sql)").first { $0.value(0) } ?? .null
        try Meta.set(db, initialKey(entity, slot), Int64(bitPattern: ValueHash.of(value)))
    }

    static func createTable(_ db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE IF NOT EXISTS \(InternalName.prints)(
                  entity INTEGER NOT NULL, key NOT NULL, prints BLOB NOT NULL, PRIMARY KEY(entity, key)) WITHOUT ROWID
                """)
    }

    /// Deletes the hashes of these entities.
    static func forget(_ db: Database, _ entities: [Int64]) throws {
        for entity in entities {
            try db.execute(sql: "DELETE FROM \(InternalName.prints) WHERE entity = ?", arguments: [entity])
            try db.execute(sql: "DELETE FROM \(InternalName.meta) WHERE key = ?", arguments: [key(entity)])
        }
    }

    /// Stores the hashes of a table's current values. The table must agree with the log.
    static func adopt(_ db: Database, _ entity: Entity, _ tally: RowTally? = nil) throws {
        try forget(db, [entity.id])
        let hashes = try RowHashTable(db)
        try forEachRow(db, entity, tally) { _, key, values in
            var row = RowHash()
            for (column, value) in values { row[column.slot] = ValueHash.of(value) }
            try hashes.set(entity.id, key, row)
        }
        try setPosition(db, entity.id, db.lastChange())
    }

    /// Calls `body` with each row of a table that can have an entry among the hashes.
    ///
    /// - Parameter tally: Counts all rows.
    static func forEachRow(
        _ db: Database, _ entity: Entity, _ tally: RowTally? = nil,
        _ body: (_ row: Int64?, _ key: HashKey, _ values: [(column: EntityColumn, value: Value)]) throws -> Void
    ) throws {
        let columns = entity.columns
        let names = (entity.integerKey.map { [$0] } ?? []) + columns.map(\.name)
        let first = entity.integerKey == nil ? 0 : 1
        let read = try PreparedStatement(
            db, "SELECT \(names.map(\.quotedName).joined(separator: ", ")) FROM \(entity.name.storeTable)")
        while try read.step() {
            tally?.count()
            let row = first == 0 ? nil : read.integer(0)
            let values = columns.enumerated().map { (column: $1, value: read.value(Int32(first + $0))) }
            guard let key = HashKey(entity, row, values) else { continue }
            try body(row, key, values)
        }
    }

    /// Stores the hashes of all tables that have none.
    static func adoptMissing(_ db: Database) throws {
        for entity in try Catalog.load(db).entities where entity.hasIdentity {
            if try position(db, entity.id) == nil { try adopt(db, entity) }
        }
    }

    /// Applies the log to the hashes, up to this position.
    ///
    /// - Parameters:
    ///   - only: The entities to update. Nil means all.
    ///   - limit: The approximate number of log rows to read.
    /// - Returns: False if there is more to apply.
    @discardableResult
    static func advance(
        _ db: Database, through end: Int64, only: Set<Int64>? = nil, limit: Int64 = .max
    ) throws -> Bool {
        let catalog = try Catalog.load(db)
        var positions: [Int64: Int64] = [:]
        for entity in catalog.entities where only?.contains(entity.id) ?? true {
            if let position = try position(db, entity.id), position < end { positions[entity.id] = position }
        }
        guard let first = positions.values.min() else { return true }
        let last = try lastOfPart(db, after: first, through: end, limit)
        let hashes = try RowHashTable(db)
        try LogReader(db, catalog: catalog).forEach(from: first + 1, to: last + 1) { change in
            guard let position = positions[change.entity.id], change.id > position else { return }
            try hashes.apply(change)
        }
        for (entity, position) in positions.sorted(by: { $0.key < $1.key }) where position < last {
            try setPosition(db, entity, last)
        }
        return last == end
    }

    /// Returns the ID at which a part of so many log rows ends. The state before an update stays with the update.
    private static func lastOfPart(_ db: Database, after first: Int64, through end: Int64, _ limit: Int64) throws
        -> Int64
    {
        let row = try Row.fetchOne(
            db,
            sql: """
                SELECT id, k = \(ChangeKind.Mark.before) AND e <> 0 AS isBefore FROM \(InternalName.log)
                WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT 1 OFFSET ?3
                """, arguments: [first, end, limit - 1])
        guard let row else { return end }
        let last: Int64 = row["id"]
        return min(end, (row["isBefore"] as Bool?) ?? false ? last + 1 : last)
    }

    /// Prepares for the deletion of the log up to this position.
    ///
    /// - Parameter limit: The approximate number of log rows to read.
    /// - Returns: False if this must be called again before anything is deleted.
    static func prune(_ db: Database, through end: Int64, limit: Int64) throws -> Bool {
        guard try advance(db, through: end, limit: limit) else { return false }
        // For a table that isn't tracked at the moment, it is no longer known what it should hold when it comes back.
        let tracked = Set(try Catalog.load(db).entities.map(\.id))
        let known = try Int64.fetchAll(db, sql: "SELECT id FROM \(InternalName.entities)")
        try forget(
            db, known.filter { id in try !tracked.contains(id) && (position(db, id).map { $0 < end } ?? false) })
        return true
    }
}

/// The key of a row in the table of hashes.
enum HashKey: Hashable {
    case row(Int64)
    /// The values of the identity columns in this file.
    case values([UInt8])

    /// Nil if the row has NULL in an identity column.
    init?(_ entity: Entity, _ row: Int64?, _ values: [(column: EntityColumn, value: Value)]) {
        if entity.isKeyedByInteger {
            guard let row else { return nil }
            self = .row(row)
            return
        }
        let columns = entity.identityColumns
        let found = columns.compactMap { column in values.first { $0.column.slot == column.slot }?.value }
        guard !found.isEmpty, found.count == columns.count, !found.contains(.null) else { return nil }
        self = .values(StableID(values: found).bytes)
    }
}

/// The hashes of one row's columns, by slot.
struct RowHash: Equatable {
    private var hashes: [UInt64] = []

    init() {}

    init(bytes: [UInt8]) {
        hashes = stride(from: 0, to: bytes.count - bytes.count % 8, by: 8).map { start in
            bytes[start..<start + 8].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        }
    }

    /// Eight bytes for each slot, the lowest byte first.
    var bytes: [UInt8] {
        hashes.flatMap { hash in (0..<8).map { UInt8(truncatingIfNeeded: hash >> (8 * $0)) } }
    }

    subscript(slot: Int) -> UInt64 {
        get { slot <= hashes.count ? hashes[slot - 1] : ValueHash.unknown }
        set {
            if slot > hashes.count {
                hashes += [UInt64](repeating: ValueHash.unknown, count: slot - hashes.count)
            }
            hashes[slot - 1] = newValue
        }
    }
}

/// The table of hashes. Confined to its connection.
final class RowHashTable {
    private let find: PreparedStatement
    private let save: PreparedStatement
    private let remove: PreparedStatement

    init(_ db: Database) throws {
        let row = "entity = ?1 AND key = ?2"
        find = try PreparedStatement(db, "SELECT prints FROM \(InternalName.prints) WHERE \(row)")
        save = try PreparedStatement(
            db, "INSERT OR REPLACE INTO \(InternalName.prints)(entity, key, prints) VALUES (?1, ?2, ?3)")
        remove = try PreparedStatement(db, "DELETE FROM \(InternalName.prints) WHERE \(row)")
    }

    private func bind(_ statement: PreparedStatement, _ entity: Int64, _ key: HashKey) {
        statement.bind(1, entity)
        switch key {
        case .row(let row): statement.bind(2, row)
        case .values(let bytes): statement.bind(2, blob: bytes)
        }
    }

    func row(_ entity: Int64, _ key: HashKey) throws -> RowHash? {
        bind(find, entity, key)
        return try find.first { RowHash(bytes: $0.blob(0)) }
    }

    func set(_ entity: Int64, _ key: HashKey, _ row: RowHash) throws {
        bind(save, entity, key)
        save.bind(3, blob: row.bytes)
        try save.run()
    }

    private func delete(_ entity: Int64, _ key: HashKey) throws {
        bind(remove, entity, key)
        try remove.run()
    }

    /// Applies a change from the log.
    func apply(_ change: LogChange) throws {
        let entity = change.entity.id
        let new = HashKey(change.entity, change.row, change.values)
        if change.kind == .delete {
            if let new { try delete(entity, new) }
            return
        }
        let old = change.before.map { HashKey(change.entity, $0.row ?? change.row, $0.values) } ?? new
        var row = RowHash()
        if change.kind == .update, let old { row = try self.row(entity, old) ?? row }
        for (column, value) in change.values { row[column.slot] = ValueHash.of(value) }
        if let old, old != new { try delete(entity, old) }
        if let new { try set(entity, new, row) }
    }
}
