import GRDB
import MartletStore

/// What other programs do to tables, beside writing to their rows. Each belongs to a feature of its own, whose draws
/// change no others.
extension Simulation {
    enum TableWork {
        case backUp, rebuild, drop, recreate, trigger
    }

    /// The rows of a table right after a rebuild that has kept all of them.
    struct RebuiltRows {
        var table: TableProfile
        var rows: [String]
    }

    /// What another program does in this step.
    func tableWork(_ node: SimulatedNode, keepsReferences: Bool) throws -> TableWork? {
        let features = options.features
        guard schema.isGenerated, node.copiedTable == nil else { return nil }
        let chance = Chance(step.seed)
        if features.contains(.recreations), !keepsReferences {
            if try start(node).other.read(TableRecreation.isUnderWay) { return .recreate }
            if chance.once(in: 3, "drops a table") { return .drop }
        }
        if features.contains(.backups), chance.once(in: 2, "cares for backups") {
            return keepsReferences || chance.once(in: 3, "makes a backup") ? .backUp : .rebuild
        }
        // Where SQLite checks references, it may miss some that are broken; see `collide`.
        guard features.contains(.lateTriggers), !keepsReferences else { return nil }
        return chance.once(in: 2, "creates a trigger") ? .trigger : nil
    }

    /// What happens before the transaction.
    func prepare(_ work: TableWork?, _ node: SimulatedNode) throws {
        guard schema.isGenerated else { return }
        if options.features.contains(.recreations), Chance(step.seed).once(in: 4, "attaches") { try attach(node) }
        // What Martlet finds in the file until then is not what it finds because of the rebuild.
        if work == .rebuild { try readHistory(node) }
    }

    /// The number under which the shrinker knows the work on tables, unless it is left out.
    private func isWanted() -> Bool {
        let number = step.number * 100 + 51
        guard !options.withoutStatements.contains(number) else { return false }
        statements.append(number)
        return true
    }

    // MARK: Backups

    private func backup(of table: TableProfile) -> String { "sim_backup_" + table.name }

    /// Copies a table into one that nobody tracks.
    func backUpTable(_ node: SimulatedNode, _ db: Database, _ done: inout [String]) throws {
        guard let table = Chance(step.seed).pick(try profiles(of: node, db), { "backed up " + $0.name }), isWanted()
        else { return }
        let name = backup(of: table).quotedName
        try run(["DROP TABLE IF EXISTS \(name)", "CREATE TABLE \(name) AS SELECT * FROM \(table.quoted)"], db, &done)
    }

    /// Rebuilds a table with all of its rows while an older copy of it exists, in a transaction that does nothing else.
    ///
    /// - Returns: nil if there is no such table.
    func rebuildBesideBackup(_ node: SimulatedNode, _ db: Database, _ done: inout [String]) throws -> RebuiltRows? {
        let chance = Chance(step.seed)
        let tables = try profiles(of: node, db).filter { table in
            try Bool.fetchOne(
                db, sql: "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?)",
                arguments: [backup(of: table)]) ?? false
        }
        guard try !TableRebuilder.hasCopy(db), let table = chance.pick(tables, { "rebuilt " + $0.name }), isWanted()
        else { return nil }
        let way = chance.pick(TableRebuilder.Way.allCases) { "\($0)" } ?? .newName
        try run(try TableRebuilder(db: db, table: table).statements(way, keeping: "1"), db, &done)
        return RebuiltRows(table: table, rows: try rows(of: table, db))
    }

    /// Checks that Martlet leaves the rows alone once it finds a rebuild that has changed none.
    func check(_ rebuilt: RebuiltRows, _ node: SimulatedNode) throws {
        guard Chance(step.seed).once(in: 2, "looks at once") else { return }
        try readHistory(node)
        let found = try start(node).other.read { try rows(of: rebuilt.table, $0) }
        guard found != rebuilt.rows else { return }
        let gone = Set(rebuilt.rows).subtracting(found).sorted()
        let new = Set(found).subtracting(rebuilt.rows).sorted()
        throw SimulationFailure(
            .lostWrite,
            """
            \(node.name) has other rows in \(rebuilt.table.name) after a rebuild in one transaction: without \(gone), \
            with \(new)
            """)
    }

    private func rows(of table: TableProfile, _ db: Database) throws -> [String] {
        let values = table.columns.map { "quote(\($0.quoted))" }.joined(separator: " || ', ' || ")
        return try String.fetchAll(db, sql: "SELECT \(values) FROM \(table.quoted)").sorted()
    }

    // MARK: Recreated tables

    /// Drops a table after this transaction's writes. Creates it again, and fills it, in the same transaction or later.
    func dropTable(_ node: SimulatedNode, _ db: Database, _ done: inout [String]) throws {
        let chance = Chance(step.seed)
        let tables = try profiles(of: node, db).filter { try TableRecreation.isAlone(db, $0) }
        guard try !TableRebuilder.hasCopy(db), let table = chance.pick(tables, { "dropped " + $0.name }), isWanted()
        else { return }
        try run(try TableRecreation(db: db, table: table).statements(chance), db, &done)
    }

    func continueRecreation(_ db: Database, _ done: inout [String]) throws {
        guard isWanted() else { return }
        try run(try TableRecreation.next(db), db, &done)
    }

    /// Brings all tables back: without one of them, the node could not agree with others.
    func finishRecreation(_ node: SimulatedNode) throws {
        guard options.features.contains(.recreations), schema.isGenerated else { return }
        let other = try start(node).other
        try other.writeWithoutTransaction { try $0.execute(sql: "PRAGMA foreign_keys = 0") }
        for _ in 0..<4 where try other.read(TableRecreation.isUnderWay) {
            var done: [String] = []
            try other.write { try run(try TableRecreation.next($0), $0, &done) }
            note("\(node.name)'s program: \(done.joined(separator: "; "))")
        }
        guard try !other.read(TableRecreation.isUnderWay) else {
            throw SimulationFailure(.error, "the program on \(node.name) can't recreate a table")
        }
    }

    /// Attaches all tables, as a program may do at each start.
    private func attach(_ node: SimulatedNode) throws {
        let open = try start(node)
        let tables = try open.other.read { try TableInspector($0).userTables() }
        // It would track such a copy as a table of its own.
        guard !tables.contains(TableRebuilder.temporary) else { return }
        var request = schema.request
        request.identities = request.identities.filter { tables.contains($0.key) }
        let names = try open.store.attach(request).attached.map(\.name)
        guard names.isEmpty else {
            throw SimulationFailure(.history, "\(node.name) attaches \(names) again, although they were tracked")
        }
        note("attaches its tables")
    }

    // MARK: Triggers

    /// Creates a trigger, and writes to its table before anybody else has read the schema.
    func createTrigger(_ node: SimulatedNode, _ db: Database, _ done: inout [String]) throws {
        let chance = Chance(step.seed)
        let profiles = try profiles(of: node, db)
        // Other triggers of the table might derive data from the row that this one changes meanwhile.
        let tables = try profiles.filter { try !TableRebuilder.hasTriggers(db, $0) }
        guard let table = chance.pick(tables, { "triggered " + $0.name }),
            let sql = trigger(on: table, profiles.filter { $0.name != table.name }, chance), isWanted()
        else { return }
        try run([sql], db, &done)
        var writer = try CollidingWriter(db, [table], options.features, keepsReferences: false)
        for place in 60..<64 { try writeStatement(at: place, &writer, node, db, &done) }
    }

    /// A trigger that sets another column of the row that has fired it, or a column of another table's rows. Nil if
    /// there is none that may hold any value.
    private func trigger(on table: TableProfile, _ others: [TableProfile], _ chance: Chance) -> String? {
        let head = "CREATE TRIGGER late_\(step.number) AFTER"
        let other = chance.once(in: 2, "other table") ? chance.pick(others) { "triggering " + $0.name } : nil
        if let other, let column = chance.pick(free(other), { "set by trigger " + $0.name }) {
            let old = column.quoted
            let value = ValuePool.isText(column.type) ? "coalesce(\(old), '') || '+'" : "coalesce(\(old), 0) + 1"
            return
                "\(head) INSERT ON \(table.quoted) BEGIN UPDATE \(other.quoted) SET \(old) = \(value); END"
        }
        guard let column = chance.pick(free(table), { "set by trigger " + $0.name }) else { return nil }
        let value =
            ValuePool.isText(column.type) ? "'late'" : column.type.contains("BLOB") ? "x'07'" : "7"
        let isRow = table.rowKey.map { "\($0) IS NEW.\($0)" }.joined(separator: " AND ")
        let event = chance.once(in: 2, "on update") ? "UPDATE" : "INSERT"
        return """
            \(head) \(event) ON \(table.quoted) WHEN NEW.\(column.quoted) IS NOT \(value) BEGIN \
            UPDATE \(table.quoted) SET \(column.quoted) = \(value) WHERE \(isRow); END
            """
    }

    /// Columns that no key, constraint or reference reads.
    private func free(_ table: TableProfile) -> [TableProfile.Column] {
        table.columns.filter { column in
            !column.isKey && !column.isNarrow && !column.isTarget
                && !table.references.contains { $0.columns.contains(column.name) }
        }
    }
}
