import GRDB

/// A row that exists, or is missing, without a change in the log that explains it.
struct AuditedRow {
    enum Name {
        /// The row's integer key.
        case row(Int64)
        /// The row's stable ID, if it has no integer key.
        case identity(StableID)
    }

    var name: Name
    var isThere: Bool
    /// For a missing row: the newest row of the log that isn't stamped yet and has the identity columns.
    var image: Int64?
    /// For an existing row without an integer key: the values of the identity columns.
    var values: [Value] = []

    /// The key of an existing row in the table of hashes.
    var hashKey: HashKey {
        switch name {
        case .row(let row): .row(row)
        case .identity: .values(StableID(values: values).bytes)
        }
    }
}

/// Finds rows of tracked tables that exist, or are missing, without a change in the log that explains it. Writes
/// nothing.
///
/// Linear in the rows of the tables and the log, whatever SQLite's planner would do: each is read once, in key order,
/// and compared here. All reads must be in one transaction. Confined to its connection.
struct AuditScan {
    private let db: Database
    private let resolver: IdentityResolver
    /// The last state of each row in the part of the log that isn't stamped yet.
    private var keyed: [Int64: [Int64: LoggedRow]] = [:]
    /// The same, for rows that are identified only by their stable IDs.
    private var named: [Int64: [StableID: LogTrace]] = [:]
    private let progress: (AuditProgress) throws -> Void

    /// The state of a row according to the log.
    enum LogTrace {
        case there, gone
        /// The row was updated, which doesn't tell where it came from.
        case updated
    }

    private struct LoggedRow {
        var trace = LogTrace.updated
        /// The newest row of the log that has the identity columns of this row.
        var image: Int64?
    }

    /// The number of rows read between two progress reports.
    private static let interval = 10_000

    init(
        _ db: Database, _ entities: [Entity], _ resolver: IdentityResolver,
        progress: @escaping (AuditProgress) throws -> Void = { _ in }
    ) throws {
        self.db = db
        self.resolver = resolver
        self.progress = progress
        let stamped = try Meta.integer(db, MetaKey.stamped) ?? 0
        try readKeyed(entities.filter(\.isKeyedByInteger), after: stamped)
        named = try Self.states(db, entities.filter { !$0.isKeyedByInteger }, resolver, after: stamped)
    }

    private mutating func readKeyed(_ entities: [Entity], after stamped: Int64) throws {
        guard !entities.isEmpty else { return }
        let read = try PreparedStatement(
            db,
            """
            SELECT e, r, k, id FROM \(InternalName.log) WHERE id > ?1 AND k IN (1, 2, 3, 4)
            AND e IN (\(entities.map { String($0.id) }.joined(separator: ", "))) ORDER BY id
            """)
        read.bind(1, stamped)
        let statements = StatementCache()
        func isThere(_ entity: Int64, _ row: Int64) throws -> Bool {
            switch keyed[entity]?[row]?.trace {
            case .there: return true
            case .gone: return false
            case .updated, nil:
                let find = try statements(db, "SELECT 1 FROM \(InternalName.side(entity)) WHERE row = ?1")
                find.bind(1, row)
                return try find.first { _ in true } ?? false
            }
        }
        var before: (id: Int64, row: Int64)?
        while try read.step() {
            guard let row = read.optionalInteger(1) else { continue }
            let (entity, id) = (read.integer(0), read.integer(3))
            switch read.integer(2) {
            case ChangeKind.Mark.before:
                before = (id, row)
                continue
            case ChangeKind.insert.code: note(entity, row, .there, image: id)
            case ChangeKind.delete.code: note(entity, row, .gone)
            default:
                if let before, before.id == id - 1, before.row != row {
                    // A trigger may have moved a row whose insert is logged later. Nothing stamps it under its new key.
                    let hasMoved = try isThere(entity, before.row)
                    note(entity, before.row, .gone)
                    note(entity, row, hasMoved ? .there : nil, image: id)
                } else {
                    note(entity, row, nil, image: id)
                }
            }
            before = nil
        }
    }

    private mutating func note(_ entity: Int64, _ row: Int64, _ trace: LogTrace?, image: Int64? = nil) {
        func set(_ row: inout LoggedRow) {
            row.trace = trace ?? row.trace
            row.image = image ?? row.image
        }
        set(&keyed[entity, default: [:]][row, default: LoggedRow()])
    }

    /// Returns the last state in the log after this change of each row in tables without an integer key.
    static func states(
        _ db: Database, _ entities: [Entity], _ resolver: IdentityResolver, after first: Int64
    ) throws -> [Int64: [StableID: LogTrace]] {
        guard !entities.isEmpty else { return [:] }
        var states: [Int64: [StableID: LogTrace]] = [:]
        let ids = Set(entities.map(\.id))
        let last = try db.lastChange()
        func identity(_ entity: Entity, _ values: [(column: EntityColumn, value: Value)]) throws -> StableID? {
            let columns = entity.identityColumns
            let found = columns.compactMap { column in values.first { $0.column.slot == column.slot }?.value }
            guard found.count == columns.count else { return nil }
            return try name(db, entity, found, resolver)
        }
        try LogReader(db, catalog: resolver.catalog).forEach(from: first + 1, to: last + 1) { change in
            let entity = change.entity
            guard ids.contains(entity.id) else { return }
            let new = try identity(entity, change.values)
            let old = try change.before.flatMap { try identity(entity, $0.values) }
            let isPlain = change.kind == .update && (change.before == nil || old == new)
            if isPlain {
                if let new, states[entity.id]?[new] == nil { states[entity.id, default: [:]][new] = .updated }
                return
            }
            if let old { states[entity.id, default: [:]][old] = .gone }
            if let new { states[entity.id, default: [:]][new] = change.kind == .delete ? .gone : .there }
        }
        return states
    }

    /// Returns the ID of a row with these values. If a row that it refers to has no ID yet, the ID is made from the
    /// plain values.
    private static func name(
        _ db: Database, _ entity: Entity, _ values: [Value], _ resolver: IdentityResolver
    ) throws -> StableID? {
        guard !values.contains(.null) else { return nil }
        return try resolver.identity(db, entity, localValues: values) ?? StableID(values: values)
    }

    /// Returns the findings for one table: in key order, or, without an integer key, missing rows first.
    func rows(_ entity: Entity) throws -> [AuditedRow] {
        try progress(AuditProgress(table: entity.name, rows: 0))
        return try entity.isKeyedByInteger ? keyedRows(entity) : namedRows(entity)
    }

    private func count(_ rows: inout Int, _ entity: Entity) throws {
        rows += 1
        if rows.isMultiple(of: Self.interval) { try progress(AuditProgress(table: entity.name, rows: rows)) }
    }

    private func keyedRows(_ entity: Entity) throws -> [AuditedRow] {
        guard let key = entity.integerKey?.quotedName else { return [] }
        let states = keyed[entity.id] ?? [:]
        let reserved = Set(
            try Int64.fetchAll(
                db, sql: "SELECT row FROM \(InternalName.reserved) WHERE entity = ?", arguments: [entity.id]))
        let known = try KeyStream(db, "SELECT row FROM \(InternalName.side(entity.id)) ORDER BY row")
        let present = try KeyStream(db, "SELECT \(key) FROM \(entity.name.storeTable) ORDER BY \(key)")
        var logged = states.filter { $0.value.trace == .there }.keys.sorted()[...]
        var found: [AuditedRow] = []
        var rows = 0
        while let row = [known.next, present.next, logged.first].compactMap(\.self).min() {
            let isKnown = try known.take(row)
            let isPresent = try present.take(row)
            if logged.first == row { logged.removeFirst() }
            let isExpected =
                switch states[row]?.trace {
                case .there: true
                case .gone: false
                case .updated, nil: isKnown && !reserved.contains(row)
                }
            if isExpected != isPresent {
                found.append(AuditedRow(name: .row(row), isThere: isPresent, image: states[row]?.image))
            }
            if isPresent { try count(&rows, entity) }
        }
        return found
    }

    private func namedRows(_ entity: Entity) throws -> [AuditedRow] {
        let columns = entity.identityColumns
        guard !columns.isEmpty else { return [] }
        var known = Set<StableID>()
        let side = try PreparedStatement(db, "SELECT ident FROM \(InternalName.side(entity.id))")
        while try side.step() { known.insert(StableID(bytes: side.blob(0))) }
        for (identity, trace) in named[entity.id] ?? [:] {
            switch trace {
            case .there: known.insert(identity)
            case .gone: known.remove(identity)
            case .updated: break
            }
        }
        let read = try PreparedStatement(
            db, "SELECT \(columns.map(\.name.quotedName).joined(separator: ", ")) FROM \(entity.name.storeTable)")
        var found: [AuditedRow] = []
        var rows = 0
        while try read.step() {
            try count(&rows, entity)
            let values = columns.indices.map { read.value(Int32($0)) }
            guard let identity = try Self.name(db, entity, values, resolver) else { continue }
            if known.remove(identity) == nil {
                found.append(AuditedRow(name: .identity(identity), isThere: true, values: values))
            }
        }
        let vanished = known.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
        return vanished.map { AuditedRow(name: .identity($0), isThere: false) } + found
    }
}

/// Reads integer keys in ascending order, one at a time.
private final class KeyStream {
    private let statement: PreparedStatement
    private(set) var next: Int64?

    init(_ db: Database, _ sql: String) throws {
        statement = try PreparedStatement(db, sql)
        try advance()
    }

    /// - Returns: True if this key is the next one. The stream then moves past it.
    func take(_ key: Int64) throws -> Bool {
        guard next == key else { return false }
        try advance()
        return true
    }

    private func advance() throws {
        next = try statement.step() ? statement.integer(0) : nil
    }
}
