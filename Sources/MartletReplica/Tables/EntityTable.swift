package import GRDB
package import MartletCore
package import MartletMerge
package import MartletStore
package import MartletWire

/// Reads and writes the rows of one entity together with their clocks.
///
/// Confined to the engine's connection.
package final class EntityTable {
    package let entity: Entity
    private unowned let context: TableContext
    private let table: String
    private let sideName: String
    private let key: String?
    package let slots: [Int]
    package let highestSlot: Int
    package let identityColumns: [EntityColumn]
    package let columnsBySlot: [Int: EntityColumn]
    private let columnsByName: [String: EntityColumn]
    /// SQLite treats names that differ only in case as equal.
    private let columnsByFoldedName: [String: EntityColumn]
    /// The columns of all unique keys by which rows can conflict, including columns inside expressions.
    package let uniqueSlots: Set<Int>
    package let side: SideTable
    /// True if each node assigns the rows' numbers on its own.
    package let hasLocalKey: Bool
    /// True if a row's ID involves no other row and leads directly to its clocks, if the table refuses a second row
    /// with that ID, and if writing the row affects nothing else.
    package let isPlain: Bool
    /// Maintains what the user's triggers derive from the table. Nil if there is nothing of that kind.
    package let derived: DerivedWrites?
    /// True if rows of a tracked table may refer to rows of this one.
    package let isReferenced: Bool
    /// True if rows are found by their stored IDs, false if by their columns.
    package private(set) var recordsNames: Bool
    /// True if some columns are local on every node.
    package let hasLocalColumns: Bool
    private var shapes: [ColumnShape] = []
    private var logDeleteStatement: PreparedStatement?
    private var updates: [[Int]: PreparedStatement] = [:]
    private var inserts: [[Int]: PreparedStatement] = [:]
    private var rivals: [[Int]: PreparedStatement] = [:]
    private var loggers: [[Int]: PreparedStatement] = [:]
    private var clocksStatement: PreparedStatement?
    private var identityStatement: PreparedStatement?
    private var hasRowStatement: PreparedStatement?
    private var deleteStatement: PreparedStatement?
    private var readStatement: PreparedStatement?

    /// A row in the user's table.
    package struct Found {
        package var address: RowAddress
        package var clocks: RowClocks
    }

    package init(entity: Entity, context: TableContext) {
        self.entity = entity
        self.context = context
        table = entity.name.quotedName
        derived = context.derived.flatMap { $0.isDerived(from: entity.name) ? $0 : nil }
        sideName = InternalName.side(entity.id)
        side = SideTable(entity, context.clocks, context.recent)
        hasLocalKey = entity.localKey != nil
        key = entity.integerKey?.quotedName
        identityColumns = entity.identityColumns
        slots = entity.columns.map(\.slot)
        highestSlot = slots.max() ?? 0
        var byName: [String: EntityColumn] = [:]
        for column in entity.columns { for former in column.formerNames { byName[former] = column } }
        for column in entity.columns { byName[column.name] = column }
        columnsByName = byName
        columnsByFoldedName = Dictionary(
            entity.columns.map { ($0.name.lowercased(), $0) }, uniquingKeysWith: { first, _ in first })
        let sources = entity.uniqueKeys.reduce(into: Set<String>()) { $0.formUnion($1.sources) }
        uniqueSlots = Set(entity.columns.filter { sources.contains($0.name.lowercased()) }.map(\.slot))
        columnsBySlot = Dictionary(uniqueKeysWithValues: entity.columns.map { ($0.slot, $0) })
        isPlain =
            derived == nil
            && (entity.identity == .hidden
                || entity.integerKey == nil && entity.hasUniqueIdentity
                    && identityColumns.allSatisfy { $0.reference == nil })
        recordsNames = entity.recordsNames
        hasLocalColumns = entity.columns.contains(where: \.isLocal)
        isReferenced = context.catalog.entities.contains { other in
            other.foreignKeys.contains { context.catalog[$0.target]?.id == entity.id }
        }
    }

    /// Returns the shape of the change's columns.
    ///
    /// - Throws: ``UnknownSchema`` if the table has no such column.
    package func shape(of change: DecodedChange) throws -> ColumnShape {
        for shape in shapes where shape.names == change.names { return shape }
        let columns = try change.message().columns
        var known: [EntityColumn] = []
        for column in columns {
            let own = self.column(named: column.name)
            let found = own ?? column.formerNames.lazy.compactMap(self.column).first
            // A former name doesn't count if the change has another column under the present name.
            guard let found, own != nil || !columns.contains(where: { $0.name == found.name }) else {
                throw UnknownSchema(detail: "column \(entity.name).\(column.name)")
            }
            known.append(found)
        }
        let shape = ColumnShape(known, names: change.names, table: self, context: context)
        // Frequent shapes stay in front, and a sender could send any number of lists.
        if shapes.count >= 32 { shapes.removeLast() }
        shapes.append(shape)
        return shape
    }

    /// Returns the columns that this node takes. Values of columns that are local on every node stay where they were
    /// written, and columns that were dropped here have no place.
    package func shared(_ columns: [WireColumn]) -> [WireColumn] {
        leavesOut ? columns.filter { !isLocal($0) && !isGone($0) } : columns
    }

    /// Returns the columns that are local on every node.
    package func local(_ columns: [WireColumn]) -> [WireColumn] { columns.filter(isLocal) }

    /// Returns the change with only the columns that this node takes.
    package func shared(_ change: DecodedChange) throws(WireError) -> DecodedChange {
        guard leavesOut, !takesAll(change.names) else { return change }
        var wire = try change.message()
        guard wire.columns.contains(where: { isLocal($0) || isGone($0) }) else { return change }
        wire.columns = shared(wire.columns)
        return DecodedChange(wire)
    }

    /// Returns true if this node is known to take all of these columns, as of most changes: then their message need not
    /// be decoded.
    package func takesAll(_ names: [String]) -> Bool {
        shapes.contains { $0.names == names && !$0.hasLocalColumns }
    }

    private var leavesOut: Bool { hasLocalColumns || !entity.goneColumns.isEmpty }

    private func isGone(_ wire: WireColumn) -> Bool {
        guard !entity.goneColumns.isEmpty, column(named: wire.name) == nil else { return false }
        return entity.goneColumns.contains(wire.name.lowercased())
            && wire.formerNames.allSatisfy { column(named: $0) == nil }
    }

    private func isLocal(_ wire: WireColumn) -> Bool {
        let own = column(named: wire.name) ?? wire.formerNames.lazy.compactMap(column).first
        return own?.isLocal ?? false
    }

    /// Returns the column with this name or former name.
    package func column(named name: String) -> EntityColumn? {
        columnsByName[name] ?? columnsByFoldedName[name.lowercased()]
    }

    // MARK: Finding

    private var findSQL: String {
        let match = entity.identityMatch("t.", from: 1)
        guard let key else {
            return """
                SELECT NULL, s.hlc, s.node, s.attrs FROM \(table) AS t LEFT JOIN \(sideName) AS s
                ON s.ident = ?\(identityColumns.count + 1) WHERE \(match)
                """
        }
        if recordsNames {
            return """
                SELECT s.row, s.hlc, s.node, s.attrs FROM \(sideName) AS s JOIN \(table) AS t ON t.\(key) = s.row
                WHERE s.ident = ?1
                """
        }
        return """
            SELECT t.\(key), s.hlc, s.node, s.attrs FROM \(table) AS t LEFT JOIN \(sideName) AS s ON s.row = t.\(key)
            WHERE \(match)
            """
    }
    private var findStatement: PreparedStatement?

    /// Returns the row with this stable ID, if it is in its table. Nil also if the ID can't be expressed in this store.
    ///
    /// - Parameter known: the values of its identity columns, if the caller knows better.
    package func find(_ db: Database, _ identity: StableID, holding known: [Value]? = nil) throws -> Found? {
        let find = try findStatement ?? PreparedStatement(db, findSQL)
        findStatement = find
        var values: [Value] = []
        if recordsNames {
            find.bind(1, blob: identity.bytes)
        } else {
            guard let local = try known ?? context.resolver.localValues(db, entity, identity) else { return nil }
            values = local
            for (index, value) in values.enumerated() { find.bind(Int32(index + 1), value) }
            if key == nil { find.bind(Int32(values.count + 1), blob: identity.bytes) }
        }
        let recent = key == nil ? context.recent.find(entity.id, identity) : nil
        return try find.first { row in
            let clocks =
                recent.map { $0.clocks ?? RowClocks(inserted: .zero) }
                ?? (row.isNull(1) ? RowClocks(inserted: .zero) : context.clocks.decode(row, from: 1, of: entity.id))
            return Found(address: key == nil ? .identity(values) : .key(row.integer(0)), clocks: clocks)
        }
    }

    /// Returns true if a change of these columns may free a unique key for another row, or change the row's rank.
    package func mayFreeKey(_ slots: [Int]) -> Bool {
        // The columns in the condition of a partial index are not among the columns of its key.
        !uniqueSlots.isDisjoint(with: slots) || entity.uniqueKeys.contains { $0.condition != nil }
    }

    /// Inserts a row, unless its table refuses it.
    ///
    /// - Returns: true if it was inserted.
    package func insertUnlessRefused(_ db: Database, row: Int64?, _ values: [(slot: Int, value: Value)]) throws -> Bool
    {
        do {
            _ = try insert(db, row: row, values)
            return true
        } catch let error as StoreError where error.refusesRow {
            return false
        }
    }

    /// Returns the row that conflicts with this one on any unique key that SQLite knows: its integer key, or else the
    /// values of its identity columns; then its ``rowid``, if it may lack an ID.
    ///
    /// Call this only after SQLite has refused to insert these values because of a unique key: otherwise it inserts
    /// them. In the SQL, `?1` is the integer key if the table has a local one, and the values begin at `?2`.
    package func findRival(_ db: Database, row: Int64?, _ values: [(slot: Int, value: Value)]) throws -> [Value]? {
        var names = (entity.integerKey.map { [$0] } ?? identityColumns.map(\.name)).map(\.quotedName)
        guard let first = names.first else { return nil }
        // For a whole number in a REAL column, RETURNING gives an integer (seen with SQLite 3.40), although its type is
        // real.
        let returned = names.map { "CASE typeof(\($0)) WHEN 'real' THEN CAST(\($0) AS REAL) ELSE \($0) END" }
        // With such a column, it also gives a real number for the rowid.
        if let rowid { names.append("CAST(\(rowid) AS INTEGER)") }
        let cacheKey = values.map(\.slot)
        // The first column keeps its value: the clause serves only to return the row.
        let find = try kept(
            &rivals[cacheKey], db,
            """
            \(insertSQL(cacheKey)) ON CONFLICT DO UPDATE SET \(first) = \(first)
            RETURNING \((returned + names[returned.count...]).joined(separator: ", "))
            """)
        if hasLocalKey { find.bind(1, optional: row) }
        for (index, value) in values.enumerated() { find.bind(Int32(index + 2), value.value) }
        do {
            return try find.first { found in names.indices.map { found.value(Int32($0)) } }
        } catch let error as StoreError where error.refusesRow {
            return nil
        }
    }

    // MARK: Names

    /// Returns the stable ID that the values of the identity columns make up, in portable form. Nil if they make up
    /// none.
    package func declaredIdentity(_ values: [Int: Value]) -> StableID? {
        StableID(columns: identityColumns.map { values[$0.slot] ?? .null }, mayBePart: entity.integerKey != nil)
    }

    /// Returns the values of the identity columns of a row with this ID, in portable form, by slot.
    package func identityValues(_ name: StableID) throws -> [Int: Value] {
        Dictionary(zip(identityColumns.map(\.slot), try name.values()), uniquingKeysWith: { first, _ in first })
    }

    /// Returns true if rows of the table can have an ID of these values. A column that refers to rows by number, which
    /// differs from node to node, must do so on every node. On another node it may have been declared later, or may no
    /// longer be.
    package func isNamed(by values: [Value]) -> Bool {
        guard values.count == identityColumns.count else { return false }
        return zip(identityColumns, values).allSatisfy { column, value in
            if case .reference = value { return column.reference != nil }
            return column.reference == nil || column.referredRow(value) == nil
        }
    }

    /// True if the columns identify all rows so far, and a row that they don't identify could be found again.
    package var mayBeNamedOtherwise: Bool { !recordsNames && entity.localKey != nil }

    package func isIdentity(_ slot: Int) -> Bool { identityColumns.contains { $0.slot == slot } }

    /// Starts looking up stored IDs, because a row arrives that its columns don't identify: an identity is fixed when
    /// the row is inserted, and the other node may have had a different rule at that time.
    package func beginRecording(_ db: Database) throws {
        guard !recordsNames else { return }
        try RecordedNames.begin(db, entity, under: entity.identity)
        context.resolver.noteRecorded(entity)
        // This creates an index.
        context.noteSchemaChange()
        recordsNames = true
        findStatement = nil
    }

    /// Returns true if a row has the ID in the side table.
    package func hasName(_ db: Database, _ identity: StableID) throws -> Bool {
        let find = try context.statement(db, "SELECT 1 FROM \(sideName) WHERE ident = ?1")
        find.bind(1, blob: identity.bytes)
        return try find.first { _ in true } ?? false
    }

    /// Returns the clocks of the row, by its integer key or, if it has none, by its stable ID.
    package func clocks(_ db: Database, row: Int64?, _ identity: StableID) throws -> RowClocks? {
        guard key != nil else { return try side.find(db, identity)?.clocks }
        let find = try kept(&clocksStatement, db, "SELECT hlc, node, attrs FROM \(sideName) WHERE row = ?1")
        find.bind(1, optional: row)
        return try find.first { context.clocks.decode($0, from: 0, of: entity.id) }
    }

    // MARK: Clocks

    private var saveStatement: PreparedStatement?

    /// - Parameter row: the row's integer key. Nil for a change that was logged while the table had none: then the row
    ///   that has the ID now gets the clocks, if there is one. Without a key, SQLite would choose one, and the next row
    ///   that gets that key would get the ID, too.
    package func saveClocks(_ db: Database, row: Int64?, _ identity: StableID, _ clocks: RowClocks) throws {
        guard key != nil else { return try context.recent.set(db, entity.id, identity, clocks) }
        guard let row = try row ?? find(db, identity)?.address.row else { return }
        let save = try kept(
            &saveStatement, db,
            """
            INSERT INTO \(sideName)(row, ident, hlc, node, attrs) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT(row)
            DO UPDATE SET ident = excluded.ident, hlc = excluded.hlc, node = excluded.node, attrs = excluded.attrs
            """)
        let inserted = clocks.inserted ?? .zero
        save.bind(1, row)
        save.bind(2, blob: identity.bytes)
        save.bind(3, inserted.time.stored)
        save.bind(4, try context.nodes.number(db, inserted.node))
        if let attributes = try context.clocks.attributes(db, clocks, of: entity.id) {
            save.bind(5, blob: attributes)
        } else {
            save.bindNull(5)
        }
        try save.run()
    }

    package func removeClocks(_ db: Database, row: Int64?, _ identity: StableID) throws {
        try side.remove(db, row: row, identity)
    }

    /// Returns the stable ID that is stored for the integer key.
    package func keptIdentity(_ db: Database, row: Int64) throws -> StableID? {
        let find = try kept(&identityStatement, db, "SELECT ident FROM \(sideName) WHERE row = ?1")
        find.bind(1, row)
        return try find.first { $0.optionalBlob(0).map(StableID.init(bytes:)) } ?? nil
    }

    /// Returns the rows whose stored ID contains these bytes. Reads all of the entity's IDs.
    package func names(_ db: Database, containing bytes: [UInt8]) throws -> [(row: Int64?, identity: StableID)] {
        if key == nil { try context.recent.flush(db) }
        let find = try PreparedStatement(
            db, "SELECT ident\(key == nil ? "" : ", row") FROM \(sideName) WHERE instr(ident, ?1) > 0 ORDER BY ident")
        find.bind(1, blob: bytes)
        var names: [(row: Int64?, identity: StableID)] = []
        while try find.step() {
            names.append((key == nil ? nil : find.integer(1), StableID(bytes: find.blob(0))))
        }
        return names
    }

    package func moveClocks(_ db: Database, from old: Int64, to new: Int64) throws {
        let move = try context.statement(db, "UPDATE OR REPLACE \(sideName) SET row = ?2 WHERE row = ?1")
        move.bind(1, old)
        move.bind(2, new)
        try move.run()
    }

    // MARK: The user's rows

    /// Returns true if the integer key is taken.
    package func hasRow(_ db: Database, _ row: Int64) throws -> Bool {
        guard let key else { return false }
        let find = try kept(&hasRowStatement, db, "SELECT 1 FROM \(table) WHERE \(key) = ?1")
        find.bind(1, row)
        return try find.first { _ in true } ?? false
    }

    /// Returns the highest integer key of any row, up to the limit, or 0.
    package func highestRow(_ db: Database, upTo limit: Int64 = .max) throws -> Int64 {
        guard let key else { return 0 }
        let find = try context.statement(db, "SELECT max(\(key)) FROM \(table) WHERE \(key) <= ?1")
        find.bind(1, limit)
        return try find.first { max(0, $0.integer(0)) } ?? 0
    }

    /// Returns the highest integer key that was ever assigned, if the table remembers it (`AUTOINCREMENT`), or 0.
    package func highestGiven(_ db: Database) throws -> Int64 {
        guard try db.hasTable("sqlite_sequence") else { return 0 }
        let find = try context.statement(db, "SELECT max(seq) FROM sqlite_sequence WHERE name = ?1 COLLATE NOCASE")
        find.bind(1, text: entity.name)
        return try find.first { $0.integer(0) } ?? 0
    }

    /// Inserts a row, with this integer key if the table has one and it is given.
    ///
    /// - Returns: the row's integer key, or nil if the table has none.
    package func insert(_ db: Database, row: Int64?, _ values: [(slot: Int, value: Value)]) throws -> Int64? {
        try checkHeld(values)
        let cacheKey = values.map(\.slot)
        let insert = try kept(&inserts[cacheKey], db, insertSQL(cacheKey))
        if hasLocalKey { insert.bind(1, optional: row) }
        for (index, value) in values.enumerated() { insert.bind(Int32(index + 2), value.value) }
        try run(insert, db)
        return key == nil ? nil : db.lastInsertedRowID
    }

    /// SQL to insert a row: `?1` is the integer key if the table has a local one, and the values begin at `?2`.
    package func insertSQL(_ slots: [Int]) -> String {
        var names = slots.compactMap { columnsBySlot[$0]?.name.quotedName }
        var parameters = slots.indices.map { "?\($0 + 2)" }
        if hasLocalKey, let key {
            names.insert(key, at: 0)
            parameters.insert("?1", at: 0)
        }
        guard !names.isEmpty else { return "INSERT \(orAbort)INTO \(table) DEFAULT VALUES" }
        return """
            INSERT \(orAbort)INTO \(table)(\(names.joined(separator: ", ")))
            VALUES (\(parameters.joined(separator: ", ")))
            """
    }

    /// The table may declare another conflict clause, and a merge must not replace rows. If it declares none, and
    /// triggers run, the clause is left out: SQLite would apply it to the triggers' statements too, whatever those say
    /// themselves.
    private var orAbort: String { derived?.decidesConflicts(entity.name) ?? true ? "OR ABORT " : "" }

    /// Runs a write to the table, and what follows from it.
    private func run(_ statement: PreparedStatement, _ db: Database) throws {
        guard let derived else { return try statement.run() }
        try derived.run(db, statement, on: entity, at: context.now())
    }

    /// SQL to update a row: the values begin at `?1`, followed by those that find the row.
    package func updateSQL(_ slots: [Int]) -> String {
        let sets = slots.enumerated().map { "\(columnsBySlot[$1]?.name.quotedName ?? "") = ?\($0 + 1)" }
        return
            "UPDATE \(orAbort)\(table) SET \(sets.joined(separator: ", ")) WHERE \(match(from: slots.count + 1))"
    }

    package func update(_ db: Database, _ address: RowAddress, _ values: [(slot: Int, value: Value)]) throws {
        guard !values.isEmpty else { return }
        try checkHeld(values)
        let cacheKey = values.map(\.slot)
        let update = try kept(&updates[cacheKey], db, updateSQL(cacheKey))
        for (index, value) in values.enumerated() { update.bind(Int32(index + 1), value.value) }
        bind(update, address, from: values.count + 1)
        try run(update, db)
    }

    /// - Throws: ``/MartletCore/StoreError``, like that of a constraint, for a value that this file would store as
    ///   another one.
    private func checkHeld(_ values: [(slot: Int, value: Value)]) throws {
        let areHeld = values.allSatisfy { columnsBySlot[$0]?.takes($1, asName: isIdentity($0)) ?? true }
        guard areHeld else { throw Affinity.refusal }
        guard context.encoding != .utf8 else { return }
        guard values.allSatisfy({ context.encoding.holds($0.value) }) else { throw TextEncoding.refusal }
    }

    package func delete(_ db: Database, _ address: RowAddress) throws {
        let delete = try deletion(db)
        bind(delete, address, from: 1)
        try run(delete, db)
    }

    package func deletion(_ db: Database) throws -> PreparedStatement {
        try kept(&deleteStatement, db, "DELETE FROM \(table) WHERE \(match(from: 1))")
    }

    /// Returns the values of all captured columns.
    package func read(_ db: Database, _ address: RowAddress) throws -> [Int: Value]? {
        guard !entity.columns.isEmpty else { return [:] }
        let read = try kept(
            &readStatement, db,
            """
            SELECT \(entity.columns.map(\.name.quotedName).joined(separator: ", ")) FROM \(table)
            WHERE \(match(from: 1))
            """)
        bind(read, address, from: 1)
        return try read.first { row in
            Dictionary(uniqueKeysWithValues: slots.enumerated().map { ($1, row.value(Int32($0))) })
        }
    }

    private var defaults: [Int: Value]?

    /// Returns the values of columns that an insert doesn't set, if they aren't null.
    package func defaultValues(_ db: Database) throws -> [Int: Value] {
        if let defaults { return defaults }
        let byName = try DefaultValues.read(db, entity)
        let found = Dictionary(
            uniqueKeysWithValues: entity.columns.compactMap { column in byName[column.name].map { (column.slot, $0) } })
        defaults = found
        return found
    }

    private var defaultTimes: [Int: String]?

    /// Returns the values of columns whose default is the time of the insert (`CURRENT_TIMESTAMP`), if an insert at
    /// this time doesn't set them: the same on every node.
    package func timeValues(_ db: Database, besides slots: [Int], at time: Int64) throws -> [(Int, Value)] {
        let times = try defaultTimes ?? DefaultValues.times(db, entity)
        defaultTimes = times
        return try times.sorted { $0.key < $1.key }.compactMap { slot, sql in
            guard !slots.contains(slot) else { return nil }
            let make = try context.statement(db, sql)
            make.bind(1, time / 1000)
            return try make.first { $0.value(0) }.map { (slot, $0) }
        }
    }

    private func match(from parameter: Int) -> String {
        if let key { return "\(key) = ?\(parameter)" }
        return entity.identityMatch(from: parameter)
    }

    private func bind(_ statement: PreparedStatement, _ address: RowAddress, from parameter: Int) {
        switch address {
        case .key(let row): statement.bind(Int32(parameter), row)
        case .identity(let values):
            for (index, value) in values.enumerated() { statement.bind(Int32(parameter + index), value) }
        }
    }

    /// Binds the values that find a row.
    package func bind(_ statement: PreparedStatement, row: Int64?, _ identity: [Value], from parameter: Int) {
        if let row { return statement.bind(Int32(parameter), row) }
        for (index, value) in identity.enumerated() { statement.bind(Int32(parameter + index), value) }
    }

    // MARK: The log

    /// SQL to log a change as a trigger would: `?1` is the row, `?2` the time, and the values begin at `?3`.
    package func logSQL(kind: Int64, mask: Value?, slots: [Int]) -> String {
        let maskSQL =
            switch mask {
            case .integer(let bits)?: "\(bits)"
            case .text(let digits)?: "'\(digits)'"
            default: "NULL"
            }
        let columns = slots.map { ", c\($0)" }.joined()
        let parameters = slots.indices.map { ", ?\($0 + 3)" }.joined()
        return """
            INSERT INTO \(InternalName.log)(e, r, k, m, t\(columns))
            VALUES (\(entity.id), ?1, \(kind), \(maskSQL), ?2\(parameters))
            """
    }

    /// The statement that logs a delete: row, time, identity.
    package func logDelete(_ db: Database) throws -> PreparedStatement {
        try kept(
            &logDeleteStatement, db,
            logSQL(kind: ChangeKind.delete.code, mask: nil, slots: identityColumns.map(\.slot)))
    }

    /// Writes a row of the log as a trigger would.
    ///
    /// - Returns: the change's ID.
    @discardableResult
    package func log(
        _ db: Database, _ kind: Int64, row: Int64?, mask: Value, time: Int64, _ values: [(slot: Int, value: Value)]
    ) throws -> Int64 {
        let cacheKey = values.map(\.slot)
        let log: PreparedStatement
        if let cached = loggers[cacheKey] {
            log = cached
        } else {
            let columns = values.map { ", c\($0.slot)" }.joined()
            let parameters = values.indices.map { ", ?\($0 + 5)" }.joined()
            log = try PreparedStatement(
                db,
                """
                INSERT INTO \(InternalName.log)(e, r, k, m, t\(columns))
                VALUES (\(entity.id), ?1, ?2, ?3, ?4\(parameters))
                """)
            loggers[cacheKey] = log
        }
        log.bind(1, optional: row)
        log.bind(2, kind)
        log.bind(3, mask)
        log.bind(4, time)
        for (index, value) in values.enumerated() { log.bind(Int32(index + 5), value.value) }
        try log.run()
        let id = db.lastInsertedRowID
        context.applied.note(id, time: time)
        return id
    }
}

/// The place of a row of a table in this file.
package enum RowAddress: Equatable {
    case key(Int64)
    /// The local values of the identity columns.
    case identity([Value])

    package var row: Int64? { if case .key(let row) = self { row } else { nil } }
}
