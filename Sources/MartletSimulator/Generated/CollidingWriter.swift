package import GRDB
import MartletStore

/// Writes statements that collide with those of other nodes, for tables of any shape: few values, values at the edges
/// of constraints, moving keys, and rows with the same key on many nodes.
package struct CollidingWriter {
    let db: Database
    let profiles: [TableProfile]
    let features: Set<SchemaFeature>
    /// True if SQLite enforces foreign keys. Otherwise, nothing is written that would lack its target.
    let keepsReferences: Bool
    /// True if triggers may write to a full-text index or an R-Tree. A statement that ends the transaction in the
    /// middle of such a write leaves a statement of the virtual table open, and with it the connection's read
    /// transaction: the connection can't write any more after another one has written (SQLite 3.40.1, also without
    /// Martlet).
    private let hasVirtualTables: Bool
    /// The draws for the current statement.
    private var chance = Chance(0)

    package init(_ db: Database, _ profiles: [TableProfile], _ features: Set<SchemaFeature>, keepsReferences: Bool)
        throws
    {
        self.db = db
        self.profiles = profiles
        self.features = features
        self.keepsReferences = keepsReferences
        hasVirtualTables =
            try Bool.fetchOne(
                db, sql: "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE%')") ?? false
    }

    /// A statement, or several that belong together. Empty if there is nothing to apply it to.
    package mutating func statements(seed: UInt64) throws -> [String] {
        chance = Chance(seed)
        guard let sql = try statement() else { return [] }
        guard wants(.savepoints, in: 12) else { return [sql] }
        chance = Chance(seed &+ 1)
        let end = chance.once(in: 2, "keeps") ? ["RELEASE s1"] : ["ROLLBACK TO s1", "RELEASE s1"]
        return ["SAVEPOINT s1", sql] + end
    }

    private func wants(_ feature: SchemaFeature, in of: Int) -> Bool {
        features.contains(feature) && chance.once(in: of, feature.rawValue)
    }

    private func statement() throws -> String? {
        if let sql = try meeting() { return sql }
        if let sql = try replacingByDefault() { return sql }
        guard let table = chance.pick(profiles, { "table " + $0.name }) else { return nil }
        switch chance.below(20, "kind") {
        case 0...9: return try insert(table)
        case 10...16: return try update(table)
        default: return try delete(table)
        }
    }

    /// Returns whether rows of the table may be deleted, or change their keys.
    private func mayLeave(_ table: TableProfile) -> Bool {
        keepsReferences || !table.isReferenced || features.contains(.leftTargets)
    }

    /// Returns whether a column may be set. Referenced columns may only be set if foreign keys are enforced.
    private func maySet(_ column: TableProfile.Column) -> Bool {
        keepsReferences || !column.isTarget || features.contains(.leftTargets)
    }

    // MARK: Inserting

    private func insert(_ table: TableProfile) throws -> String? {
        guard mayLeave(table) || !table.replacesByItself else { return nil }
        guard !table.isReferencedLoosely || !table.replacesByItself || features.contains(.replacedTargets) else {
            return nil
        }
        var columns = table.columns.filter { column in
            if column.name == table.integerKey, table.references.allSatisfy({ $0.columns != [column.name] }) {
                return chance.once(in: 4, "number of " + column.name)
            }
            let isOptional = (!column.isNotNull && !column.isKey) || column.hasDefault
            let isChecked = table.checkedTogether.contains { $0.contains(column.name) }
            return !(isOptional && chance.once(in: isChecked ? 15 : 5, "without " + column.name))
        }
        let count = wants(.multipleRows, in: 4) ? 2 + chance.below(2, "rows") : 1
        if columns.isEmpty { columns = Array(table.columns.prefix(1)) }
        columns = whole(columns, table)
        var rows: [String] = []
        for number in 0..<count {
            guard let values = try values(columns, table, "row \(number) ") else { return nil }
            rows.append("(\(values.joined(separator: ", ")))")
        }
        let upsert = wants(.upserts, in: 4) ? upsert(table) : ""
        let verb = "INSERT" + (upsert.isEmpty ? resolution(table) : "")
        let names = columns.map(\.quoted).joined(separator: ", ")
        return "\(verb) INTO \(table.quoted)(\(names)) VALUES \(rows.joined(separator: ", "))\(upsert)"
    }

    /// The columns, completed with those that form one reference with them.
    private func whole(_ columns: [TableProfile.Column], _ table: TableProfile) -> [TableProfile.Column] {
        guard !features.contains(.danglingParts) else { return columns }
        var names = Set(columns.map(\.name))
        for reference in table.references where !names.isDisjoint(with: reference.columns) {
            names.formUnion(reference.columns)
        }
        return names.count == columns.count ? columns : table.columns.filter { names.contains($0.name) }
    }

    /// Returns true for a column of a reference with several columns.
    private func isPart(_ column: TableProfile.Column, _ table: TableProfile) -> Bool {
        table.references.contains { $0.columns.count > 1 && $0.columns.contains(column.name) }
    }

    private func resolution(_ table: TableProfile) -> String {
        // Two values alone don't reveal whether an indexed expression makes them equal.
        if wants(.replace, in: table.hasExpressionKey ? 2 : 4), mayReplace(table) { return " OR REPLACE" }
        guard wants(.resolutions, in: 5) else { return "" }
        let word = ["IGNORE", "IGNORE", "FAIL", "ABORT", "ROLLBACK"][chance.below(5, "resolution")]
        return " OR " + (word == "ROLLBACK" && hasVirtualTables ? "ABORT" : word)
    }

    /// Returns whether `OR REPLACE` may displace rows of the table.
    private func mayReplace(_ table: TableProfile) -> Bool {
        mayLeave(table) && (!table.isReferencedLoosely || features.contains(.replacedTargets))
            && (!table.hasExpressionKey || features.contains(.expressionReplace))
    }

    /// Writes NULL by `OR REPLACE` to a column that is NOT NULL: SQLite puts its default there, which may displace a
    /// row that the statement doesn't name.
    private func replacingByDefault() throws -> String? {
        guard wants(.replacedNulls, in: 4) else { return nil }
        let tables = profiles.filter { mayReplace($0) && !defaulted($0).isEmpty }
        guard let table = chance.pick(tables, { "defaulted " + $0.name }),
            let column = chance.pick(defaulted(table), { "default of " + $0.name })
        else { return nil }
        if chance.once(in: 2, "by update") {
            guard maySet(column), let rows = try rows(of: table, most: chance.once(in: 2, "first rows") ? 2 : nil)
            else { return nil }
            return "UPDATE OR REPLACE \(table.quoted) SET \(column.quoted) = NULL WHERE \(rows)"
        }
        let columns = table.columns.filter { column in
            column.name != table.integerKey || table.references.contains { $0.columns == [column.name] }
        }
        guard let values = try values(columns, table, "default ") else { return nil }
        let written = zip(columns, values).map { $0.name == column.name ? "NULL" : $1 }
        let names = columns.map(\.quoted).joined(separator: ", ")
        return "INSERT OR REPLACE INTO \(table.quoted)(\(names)) VALUES (\(written.joined(separator: ", ")))"
    }

    /// The columns for which REPLACE uses a default, and which may be part of a unique key.
    private func defaulted(_ table: TableProfile) -> [TableProfile.Column] {
        table.columns.filter { column in
            column.isNotNull && column.hasDefault && column.isNarrow && !column.isKey
                && !table.references.contains { $0.columns.contains(column.name) }
        }
    }

    private func upsert(_ table: TableProfile) -> String {
        guard !chance.once(in: 4, "nothing"), let key = chance.pick(table.upsertKeys, { $0.joined(separator: ",") })
        else { return " ON CONFLICT DO NOTHING" }
        let target = key.map(\.quotedName).joined(separator: ", ")
        let others = table.columns.filter { column in
            !key.contains(column.name) && (!column.isKey || features.contains(.keyMoves))
                && maySet(column) && whole([column], table).count == 1 && (keepsReferences || !isPart(column, table))
        }
        guard let column = chance.pick(others, { "upsert " + $0.name }) else {
            return " ON CONFLICT (\(target)) DO NOTHING"
        }
        let condition = chance.once(in: 4, "where") ? " WHERE excluded.\(column.quoted) IS NOT NULL" : ""
        return " ON CONFLICT (\(target)) DO UPDATE SET \(column.quoted) = excluded.\(column.quoted)\(condition)"
    }

    // MARK: Updating and deleting

    private func update(_ table: TableProfile) throws -> String? {
        guard mayLeave(table) || !table.replacesByItself else { return nil }
        guard !table.isReferencedLoosely || !table.replacesByItself || features.contains(.replacedTargets) else {
            return nil
        }
        if let sql = try naming(table) { return sql }
        if let sql = try takingOver(table) { return sql }
        let moves = chance.once(in: 4, "moves") && features.contains(.keyMoves)
        let columns = table.columns.filter { (moves || !$0.isKey) && maySet($0) }
        guard let first = chance.pick(columns, { "set " + $0.name }),
            let rows = try rows(of: table, most: chance.once(in: 3, "same row") ? 2 : nil)
        else { return nil }
        var chosen = [first]
        if chance.once(in: 3, "two"), let other = chance.pick(columns, { "also " + $0.name }), other.name != first.name
        {
            chosen.append(other)
        }
        chosen = whole(chosen, table)
        guard chosen.allSatisfy({ column in columns.contains { $0.name == column.name } }) else { return nil }
        guard let values = try values(chosen, table, "new ", ofRow: true) else { return nil }
        let settings = zip(chosen, values).map { column, value in
            "\(column.quoted) = \(computed(column, table) ?? value)"
        }
        return "UPDATE\(resolution(table)) \(table.quoted) SET \(settings.joined(separator: ", ")) WHERE \(rows)"
    }

    /// Gives a key to a row that has none because a key column is NULL. Such a row can't be found by its key.
    private func naming(_ table: TableProfile) throws -> String? {
        let key = table.columns.filter(\.isKey)
        guard features.isSuperset(of: [.nullKeys, .keyMoves]), table.integerKey == nil, table.column("rowid") == nil,
            key.contains(where: { !$0.isNotNull }), key.allSatisfy(maySet),
            chance.once(in: 3, "named")
        else { return nil }
        let isUnnamed = "(\(key.map { "\($0.quoted) IS NULL" }.joined(separator: " OR ")))"
        guard let row = try pick(["rowid"], of: table.quoted, "unnamed", where: isUnnamed),
            let values = try values(whole(key, table), table, "name ")
        else { return nil }
        let settings = zip(whole(key, table), values).map { "\($0.quoted) = \($1)" }
        return
            "UPDATE\(resolution(table)) \(table.quoted) SET \(settings.joined(separator: ", ")) WHERE rowid = \(row[0])"
    }

    /// Gives a row the key of another one, which is displaced. Prefers a row that refers to itself, if there is one.
    private func takingOver(_ table: TableProfile) throws -> String? {
        let key = table.columns.filter(\.isKey)
        guard features.isSuperset(of: [.replace, .keyMoves, .takenKeys]), mayLeave(table), key.count == 1,
            maySet(key[0]),
            !table.isReferencedLoosely || features.contains(.replacedTargets),
            !table.references.contains(where: { $0.columns.contains(key[0].name) }), chance.once(in: 6, "takes over")
        else { return nil }
        let selves = table.references.filter {
            $0.target.lowercased() == table.name.lowercased() && $0.columns.count == 1
                && $0.targetColumns.map { $0.lowercased() } == [key[0].name.lowercased()]
        }
        let isItself = selves.map { "\($0.columns[0].quotedName) = \(key[0].quoted)" }.joined(separator: " OR ")
        let own =
            isItself.isEmpty ? nil : try pick([key[0].quoted], of: table.quoted, "itself", where: "(\(isItself))")
        guard let row = try own ?? pick([key[0].quoted], of: table.quoted, "taker"),
            let other = try pick([key[0].quoted], of: table.quoted, "taken", where: "\(key[0].quoted) IS NOT \(row[0])")
        else { return nil }
        return
            "UPDATE OR REPLACE \(table.quoted) SET \(key[0].quoted) = \(other[0]) WHERE \(key[0].quoted) IS \(row[0])"
    }

    /// Sets one of two columns that a CHECK reads together to the other's value, in the first row in which they differ:
    /// another node that sets the other column at the same time is valid too, but both together are not. Sometimes
    /// moves one of them away from the other.
    private func meeting() throws -> String? {
        let tables = profiles.filter { !$0.checkedTogether.isEmpty && mayLeave($0) && !$0.replacesByItself }
        guard chance.once(in: 4, "meeting"), let table = chance.pick(tables, { "meeting of " + $0.name }),
            let check = chance.pick(table.checkedTogether, { $0.joined(separator: ",") })
        else { return nil }
        let free = table.columns.filter { column in
            check.contains(column.name) && !column.isKey && !column.isTarget
                && !table.references.contains { $0.columns.contains(column.name) }
        }
        guard free.count > 1, let column = chance.pick(free, { "meets " + $0.name }),
            let other = chance.pick(free.filter { $0.name != column.name }, { "met " + $0.name })
        else { return nil }
        let isApart = chance.once(in: 3, "apart")
        let isWanted = "\(column.quoted) \(isApart ? "IS NOT NULL" : "<> \(other.quoted)")"
        guard let row = try pick(table.rowKey, of: table.quoted, "row", where: isWanted, most: 1) else { return nil }
        let sign = chance.once(in: 2, "sign") ? "+" : "-"
        let value = !isApart ? other.quoted : "\(column.quoted) \(sign) \(1 + chance.below(5, "step"))"
        let rows = zip(table.rowKey, row).map { "\($0) IS \($1)" }.joined(separator: " AND ")
        return "UPDATE \(table.quoted) SET \(column.quoted) = \(value) WHERE \(rows)"
    }

    /// A value computed from existing ones.
    private func computed(_ column: TableProfile.Column, _ table: TableProfile) -> String? {
        guard features.contains(.computedValues), chance.once(in: 8, "computed " + column.name),
            !table.references.contains(where: { $0.columns.contains(column.name) })
        else { return nil }
        let name = column.quoted
        if ValuePool.isText(column.type) {
            return ["lower(\(name))", "upper(\(name))", "\(name) || ' '", "rtrim(\(name))"][chance.below(4, "how")]
        }
        return ["\(name) + 1", "\(name) - 1", "-\(name)"][chance.below(3, "how")]
    }

    private func delete(_ table: TableProfile) throws -> String? {
        guard mayLeave(table), let rows = try rows(of: table) else { return nil }
        return "DELETE FROM \(table.quoted) WHERE \(rows)"
    }

    /// A condition that matches one row, or several.
    ///
    /// - Parameter most: limits the choice to this many of the table's first rows. Other nodes are then likely to pick
    ///   the same one.
    private func rows(of table: TableProfile, most: Int? = nil) throws -> String? {
        let key = table.rowKey
        guard let found = try pick(key, of: table.quoted, "row", most: most) else { return nil }
        if most == nil, wants(.multipleRows, in: 6) {
            guard let column = chance.pick(table.columns, { "where " + $0.name }) else { return "1" }
            return chance.once(in: 3, "many") ? "\(column.quoted) IS NOT NULL" : "\(key[0]) >= \(found[0])"
        }
        return zip(key, found).map { "\($0) IS \($1)" }.joined(separator: " AND ")
    }

    // MARK: Values

    /// Nil if a target is required and there is none.
    ///
    /// - Parameter isThere: true for values of an existing row.
    private func values(
        _ columns: [TableProfile.Column], _ table: TableProfile, _ draw: String, ofRow isThere: Bool = false
    ) throws -> [String]? {
        var values: [String: String] = [:]
        for column in columns {
            values[column.name] = ValuePool(column, table, features).value(chance.random(draw + column.name))
        }
        // A column by which a row refers to itself may also be part of a reference to another table.
        let isOwn = { (reference: TableProfile.Reference) in reference.target.lowercased() == table.name.lowercased() }
        for reference in table.references.filter({ !isOwn($0) }) + table.references.filter(isOwn) {
            let names = reference.columns.filter { values[$0] != nil }
            guard !names.isEmpty else { continue }
            let own = table.columns.filter { names.contains($0.name) }
            let draw = draw + "to " + reference.columns.joined(separator: ",")
            if let free = own.first(where: { !$0.isNotNull && !$0.isKey }), chance.once(in: 5, draw + " null") {
                for column in own where column.name == free.name || !features.contains(.danglingParts) {
                    if !column.isNotNull, !column.isKey { values[column.name] = "NULL" }
                }
                if names.allSatisfy({ values[$0] == "NULL" }) { continue }
            }
            if names.count == reference.columns.count, chance.once(in: 4, draw + " itself"),
                let own = itself(reference, table, values, isThere)
            {
                for (name, value) in zip(reference.columns, own) { values[name] = value }
                continue
            }
            // SQLite refuses a reference to nothing, if it checks foreign keys.
            let isAlone = names.count == 1 || features.contains(.danglingParts)
            if keepsReferences, isAlone, chance.once(in: 20, draw + " nowhere") { continue }
            let targets = reference.targetColumns.isEmpty ? ["rowid"] : reference.targetColumns.map(\.quotedName)
            guard let found = try pick(targets, of: reference.target.quotedName, draw) else {
                let free = own.filter { !$0.isNotNull && !$0.isKey }
                guard !free.isEmpty, free.count == own.count || features.contains(.danglingParts) else { return nil }
                for column in free { values[column.name] = "NULL" }
                continue
            }
            // Sets only a part of a reference's columns if SQLite checks foreign keys.
            guard names.count == reference.columns.count || keepsReferences else { return nil }
            for (name, value) in zip(reference.columns, found) where values[name] != nil && values[name] != "NULL" {
                values[name] = value
            }
        }
        return columns.map { values[$0.name] ?? "NULL" }
    }

    /// The values of a row's reference to itself. Nil if it refers to another table, or if a value is unknown.
    ///
    /// - Parameter isThere: true if columns that aren't set already have values in the row.
    private func itself(
        _ reference: TableProfile.Reference, _ table: TableProfile, _ values: [String: String], _ isThere: Bool
    ) -> [String]? {
        guard reference.target.lowercased() == table.name.lowercased() else { return nil }
        let own = reference.targetColumns.compactMap { name in
            table.column(name).flatMap { values[$0.name] ?? (isThere ? $0.quoted : nil) }
        }
        return own.isEmpty || own.count < reference.columns.count || own.contains("NULL") ? nil : own
    }

    /// SQL that returns the value as SQL. Quoted text would end at a NUL, and change if it isn't UTF-8.
    private static func literal(_ column: String) -> String {
        "CASE WHEN typeof(\(column)) = 'text'"
            + " AND (length(CAST(\(column) AS BLOB)) <> length(\(column)) OR \(column) GLOB '*[^ -~]*')"
            + " THEN 'CAST(x' || quote(hex(\(column))) || ' AS TEXT)' ELSE quote(\(column)) END"
    }

    /// The values of these columns in some row.
    ///
    /// - Parameter most: limits the choice to this many of the table's first rows.
    private func pick(
        _ columns: [String], of table: String, _ draw: String, where other: String = "1", most: Int? = nil
    ) throws -> [String]? {
        let condition = (columns.map { "\($0) IS NOT NULL" } + [other]).joined(separator: " AND ")
        let count = try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table) WHERE \(condition)") ?? 0
        guard count > 0 else { return nil }
        let places = min(count, most ?? count)
        let row = try Row.fetchOne(
            db,
            sql: """
                SELECT \(columns.map(Self.literal).joined(separator: ", ")) FROM \(table) WHERE \(condition)
                ORDER BY \(columns.joined(separator: ", ")) LIMIT 1 OFFSET \(chance.below(places, draw))
                """)
        // SQLite's quote() doesn't return valid SQL for infinity.
        let infinities = ["Inf": "9e999", "-Inf": "-9e999"]
        return row.map { row in
            row.databaseValues.map { String.fromDatabaseValue($0) ?? "NULL" }.map { infinities[$0] ?? $0 }
        }
    }
}
