import GRDB
import MartletStore

/// Writes a context's pending changes, in the order that the store needs, and remembers what it did until it is
/// committed.
///
/// Run inside a transaction. Memory isn't touched before ``finish()``, so that the transaction may be rolled back.
final class FlushPlan: SavePlan {
    let unit: TableUnit
    /// The unique values of new models, with their row.
    private var claims: [UniqueClaim: Int64] = [:]
    /// The same by row, of tables with several unique keys.
    private var claimsOfRows: [Place: [UniqueClaim]] = [:]
    /// The unique values that stored rows give up because a new model updates them.
    private var released: Set<UniqueClaim> = []
    private lazy var rekeyed = RekeyedModels(changed)
    /// The statements of this save, so that their texts aren't built for each model.
    private var writes: [Write: PreparedStatement] = [:]

    private struct Place: Hashable {
        let table: ObjectIdentifier
        let row: Int64

        init(_ table: TableLayout, _ row: Int64) {
            self.table = ObjectIdentifier(table)
            self.row = row
        }
    }

    private enum Write: Hashable {
        case insert(ObjectIdentifier)
        case upsert(ObjectIdentifier)
        case update(ObjectIdentifier, [Int])
    }

    init(_ context: ModelContext, unit index: Int, _ unit: TableUnit) {
        self.unit = unit
        super.init(context, unit: index)
        // Evaluated now: partially fetched models read the rest of their keys, which they can't while the tables are
        // written.
        _ = rekeyed
    }

    private var statements: StatementCache { unit.statements }

    /// The new models by table and row.
    private(set) lazy var newModels: [String: [Int64: any PersistentModel]] = {
        var found: [String: [Int64: any PersistentModel]] = [:]
        for model in inserted {
            guard let row = rows[ObjectIdentifier(model)], let table = model._$backing.layout?.table else { continue }
            if found[table.name]?[row] == nil { found[table.name, default: [:]][row] = model }
        }
        return found
    }()

    // MARK: Writing

    func run(_ db: Database) throws {
        var dangling = DanglingReferences(unit)
        for model in deleted {
            try dangling.note(db, before: model)
            try delete(db, model)
        }
        claims = rekeyed.taken
        try number(db)
        // A model gives up a value before another one takes it.
        try UniqueKeySwap(db: db, maker: TableMaker(layout: unit.layout), cycles: rekeyed.cycles).run {
            for model in rekeyed.ordered { try update(db, model) }
        }
        for model in inserted { try insert(db, model) }
        for model in changed where !rekeyed.contains(model) { try update(db, model) }
        for model in inserted { try writeLinks(db, model, before: [:]) }
        for model in changed where try hasRow(db, model) {
            try writeLinks(db, model, before: model._$backing.originalLinks)
        }
        try dangling.check(db)
        try leaveVanishedTargets(db)
    }

    /// Assigns row numbers before rows are written, since rows may refer to each other in a cycle.
    private func number(_ db: Database) throws {
        // The numbers that were taken last, by table.
        var last: [String: Int64] = [:]
        var started: Set<ObjectIdentifier> = []
        func assign(_ model: any PersistentModel) throws {
            guard started.insert(ObjectIdentifier(model)).inserted, let table = model._$backing.layout?.table else {
                return
            }
            // A key that has a relationship can only be looked up once the target has a number.
            for target in keyTargets(model, table) where target._$backing.state == .inserted { try assign(target) }
            if let existing = try existingRow(db, model, table) {
                rows[ObjectIdentifier(model)] = existing
                upserted.insert(ObjectIdentifier(model))
                try release(db, model, table, existing)
                claim(model, table, existing)
                return
            }
            let newest: Int64
            if let known = last[table.name] {
                newest = known
            } else {
                newest =
                    try statements(
                        db,
                        """
                        SELECT max(coalesce((SELECT max(\(TableLayout.key)) FROM \(table.name.quotedName)), 0),
                        coalesce((SELECT seq FROM sqlite_sequence WHERE name = \(table.name.quotedText)), 0))
                        """
                    ).first { $0.integer(0) } ?? 0
            }
            guard newest < .max else {
                throw StoreError(
                    .sqlite,
                    "\(table.name) has no free integer key: another program has inserted a row with the largest one.",
                    hint: "Give that row a smaller key, and update sqlite_sequence.")
            }
            let row = newest + 1
            rows[ObjectIdentifier(model)] = row
            claim(model, table, row)
            last[table.name] = row
        }
        for model in inserted { try assign(model) }
    }

    /// The models that a new model's unique keys refer to.
    private func keyTargets(_ model: any PersistentModel, _ table: TableLayout) -> [any PersistentModel] {
        let backing = model._$backing
        return table.uniqueKeys.joined().compactMap { name in
            guard let slot = backing.layout?.slot(ofColumn: name), case .one(let target) = backing.related[slot] else {
                return nil
            }
            return target
        }
    }

    /// The row that has a new model's unique values, in the store or in this transaction.
    private func existingRow(_ db: Database, _ model: any PersistentModel, _ table: TableLayout) throws -> Int64? {
        for key in table.uniqueKeys {
            guard let claim = UniqueClaim(model._$backing, key, plan: self) else { continue }
            if let row = claims[claim] { return row }
            if rekeyed.freed.contains(claim) || released.contains(claim) { continue }
            let condition = key.enumerated().map { "\($1.quotedName) = ?\($0 + 1)" }.joined(separator: " AND ")
            let statement = try statements(
                db, "SELECT \(TableLayout.key) FROM \(table.name.quotedName) WHERE \(condition)")
            for (index, value) in claim.values.enumerated() { statement.bind(Int32(index + 1), value) }
            if let row = try statement.first({ $0.integer(0) }) { return row }
        }
        return nil
    }

    /// Records which unique values a row gives up because a new model updates it by another of its keys. A further new
    /// model may take them.
    private func release(
        _ db: Database, _ model: any PersistentModel, _ table: TableLayout, _ row: Int64
    ) throws {
        guard table.uniqueKeys.count > 1 else { return }
        for key in table.uniqueKeys {
            let new = UniqueClaim(model._$backing, key, plan: self)
            let columns = key.map(\.quotedName).joined(separator: ", ")
            let select = try statements(
                db, "SELECT \(columns) FROM \(table.name.quotedName) WHERE \(TableLayout.key) = ?1")
            select.bind(1, row)
            let stored = try select.first { select in key.indices.map { select.value(Int32($0)) } }
            if let stored, let old = UniqueClaim(table.name, key, stored), old != new { released.insert(old) }
            // The row may be that of an earlier new model.
            for old in claimsOfRows[Place(table, row)] ?? [] where old.key == key && old != new && claims[old] == row {
                claims[old] = nil
            }
        }
    }

    private func claim(_ model: any PersistentModel, _ table: TableLayout, _ row: Int64) {
        for key in table.uniqueKeys {
            guard let claim = UniqueClaim(model._$backing, key, plan: self) else { continue }
            claims[claim] = row
            if table.uniqueKeys.count > 1 { claimsOfRows[Place(table, row), default: []].append(claim) }
        }
    }

    private func value(_ backing: ModelBacking, _ slot: Int, _ layout: EntityLayout) throws -> Value {
        try backing.checkEncodable(slot, of: layout)
        guard let link = layout.slots[slot].link else {
            let stored = backing.stored(slot)
            guard !layout.slots[slot].isNotANumber(stored) else {
                throw SwiftDataError.modelValidationFailure.because(
                    "\(layout.name).\(layout.slots[slot].name) is not a number (NaN), which the store can't hold.")
            }
            return stored
        }
        let result: Value
        if case .one(let target) = backing.related[slot] {
            result = reference(to: target)
        } else {
            result = backing.stored(slot)
        }
        guard link.isOptional || !result.isNull else {
            throw SwiftDataError.modelValidationFailure.because("\(layout.name).\(link.name) must not be empty.")
        }
        return result
    }

    private func insert(_ db: Database, _ model: any PersistentModel) throws {
        let backing = model._$backing
        guard let layout = backing.layout, let row = rows[ObjectIdentifier(model)] else { return }
        let isUpsert = upserted.contains(ObjectIdentifier(model))
        let id = ObjectIdentifier(layout)
        let statement = try statement(db, isUpsert ? .upsert(id) : .insert(id)) {
            let table = layout.table
            let columns =
                (table.hasTypeColumn ? [TableLayout.type] : [])
                + layout.columnSlots.map { table.columns[$0.column].name.quotedName }
            if isUpsert { return Self.updateSQL(table, columns) }
            let all = [TableLayout.key] + columns
            let marks = all.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
            return "INSERT INTO \(table.name.quotedName)(\(all.joined(separator: ", "))) VALUES (\(marks))"
        }
        statement.bind(1, row)
        var index: Int32 = 2
        if layout.table.hasTypeColumn {
            statement.bind(index, text: layout.name)
            index += 1
        }
        for (slot, _) in layout.columnSlots {
            statement.bind(index, try value(backing, slot, layout))
            index += 1
        }
        try statement.run()
    }

    private func update(_ db: Database, _ model: any PersistentModel) throws {
        let backing = model._$backing
        guard let layout = backing.layout, let row = backing.row else { return }
        let slots = backing.originals.keys.filter { layout.slots[$0].column != nil }.sorted()
        guard !slots.isEmpty else { return }
        let statement = try statement(db, .update(ObjectIdentifier(layout), slots)) {
            let columns = slots.compactMap { layout.slots[$0].column }
            return Self.updateSQL(layout.table, columns.map { layout.table.columns[$0].name.quotedName })
        }
        statement.bind(1, row)
        for (index, slot) in slots.enumerated() {
            statement.bind(Int32(index + 2), try value(backing, slot, layout))
        }
        try statement.run()
        if statement.changes == 0 { vanished.add(model) }
    }

    /// Changes of keys are written before the new models, all others after them.
    override func writesChanges(of known: any PersistentModel) -> Bool { !rekeyed.contains(known) }

    private func statement(_ db: Database, _ write: Write, _ sql: () -> String) throws -> PreparedStatement {
        if let known = writes[write] { return known }
        let statement = try statements(db, sql())
        writes[write] = statement
        return statement
    }

    /// The first parameter is the row; the columns follow.
    private static func updateSQL(_ table: TableLayout, _ columns: [String]) -> String {
        let assignments = columns.enumerated().map { "\($1) = ?\($0 + 2)" }.joined(separator: ", ")
        return "UPDATE \(table.name.quotedName) SET \(assignments) WHERE \(TableLayout.key) = ?1"
    }

    private func delete(_ db: Database, _ model: any PersistentModel) throws {
        guard let layout = model._$backing.layout, let row = model._$backing.row else { return }
        let statement = try statements(
            db, "DELETE FROM \(layout.table.name.quotedName) WHERE \(TableLayout.key) = ?1")
        statement.bind(1, row)
        try statement.run()
    }

    // MARK: Models whose rows were deleted meanwhile

    /// Returns whether a changed model still has its row. Looks it up only if links are to be written: otherwise, the
    /// update of its own columns has shown it already.
    private func hasRow(_ db: Database, _ model: any PersistentModel) throws -> Bool {
        if !vanished.contains(model), !model._$backing.originalLinks.isEmpty { try noteVanished(db, model) }
        return !vanished.contains(model)
    }

    private func noteVanished(_ db: Database, _ model: any PersistentModel) throws {
        guard let layout = model._$backing.layout, let row = row(model) else { return }
        let statement = try statements(
            db, "SELECT 1 FROM \(layout.table.name.quotedName) WHERE \(TableLayout.key) = ?1")
        statement.bind(1, row)
        if try statement.first({ _ in true }) == nil { vanished.add(model) }
    }

    /// Removes references to such rows.
    ///
    /// - Throws: ``SwiftDataError/modelValidationFailure`` if the reference is required.
    private func leaveVanishedTargets(_ db: Database) throws {
        guard db.hasOpenForeignKeys else { return }
        for model in inserted + changed {
            guard let layout = model._$backing.layout, let row = row(model) else { continue }
            for (index, slot) in layout.slots.enumerated() {
                guard let link = slot.link, let change = Self.leaving(link, slot, layout) else { continue }
                let statement = try statements(db, change)
                statement.bind(1, row)
                try statement.run()
                guard statement.changes > 0 else { continue }
                guard link.isOptional || link.isToMany else {
                    throw SwiftDataError.modelValidationFailure.because(
                        """
                        \(layout.name).\(link.name) must not be empty, but the model that it refers to has been \
                        deleted in the store meanwhile.
                        """
                    )
                }
                for target in model._$backing.related[index]?.models ?? [] { try noteVanished(db, target) }
            }
        }
    }

    /// The SQL that removes a row's dangling references. Nil for an end that the other model stores.
    private static func leaving(_ link: Link, _ slot: EntityLayout.Slot, _ layout: EntityLayout) -> String? {
        let (table, target, key) = (layout.table, link.destination.table.name.quotedName, TableLayout.key)
        switch link.storage {
        case .column:
            guard let column = slot.column.map({ table.columns[$0].name.quotedName }) else { return nil }
            return """
                UPDATE \(table.name.quotedName) SET \(column) = NULL WHERE \(key) = ?1
                AND \(column) NOT IN (SELECT \(key) FROM \(target))
                """
        case .join(let join, let own, let other):
            return """
                DELETE FROM \(join.quotedName) WHERE \(own.quotedName) = ?1
                AND \(other.quotedName) NOT IN (SELECT \(key) FROM \(target))
                """
        case .inverse, .list: return nil
        }
    }

    // MARK: Join tables

    private func writeLinks(_ db: Database, _ model: any PersistentModel, before: [Int: [any PersistentModel]]) throws {
        let backing = model._$backing
        guard let layout = backing.layout, let own = row(model) else { return }
        for (slot, link) in layout.slots.enumerated().compactMap({ index, slot in slot.link.map { (index, $0) } }) {
            guard case .join(let table, let ownColumn, let otherColumn) = link.storage,
                case .many(let now) = backing.related[slot]
            else { continue }
            let old = before[slot] ?? (backing.row == nil ? [] : now)
            func run(_ sql: String, _ target: any PersistentModel) throws {
                guard let other = row(target) else { return }
                let statement = try statements(db, sql)
                statement.bind(1, own)
                statement.bind(2, other)
                try statement.run()
            }
            let (ownName, otherName) = (ownColumn.quotedName, otherColumn.quotedName)
            let (known, kept) = (Set(old.map { ObjectIdentifier($0) }), Set(now.map { ObjectIdentifier($0) }))
            for gone in old where !kept.contains(ObjectIdentifier(gone)) {
                try run("DELETE FROM \(table.quotedName) WHERE \(ownName) = ?1 AND \(otherName) = ?2", gone)
            }
            for new in now where !known.contains(ObjectIdentifier(new)) && !new.isDeleted {
                try run("INSERT OR IGNORE INTO \(table.quotedName)(\(ownName), \(otherName)) VALUES (?1, ?2)", new)
            }
        }
    }
}
