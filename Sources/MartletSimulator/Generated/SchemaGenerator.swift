import MartletStore

/// Generates a random schema that combines keys, constraints and references of all kinds.
package struct SchemaGenerator {
    struct Column {
        var name: String
        var type: String
        var clauses: [String] = []
        var isNotNull = false
        /// True if the column may contain a row number, which each node assigns for itself: a constraint on its value
        /// would be meaningless.
        var isReference = false

        var quoted: String { name.quotedName }
        var isText: Bool { ["CHAR", "TEXT"].contains { type.contains($0) } }
        var isNumber: Bool { ["INT", "REAL", "NUM", "DOUB"].contains { type.contains($0) } }
        var sql: String { ([quoted, type] + clauses).filter { !$0.isEmpty }.joined(separator: " ") }
    }

    /// Columns that other tables may reference.
    struct Target {
        var columns: [Column]
        /// True for the primary key.
        var isKey: Bool
    }

    struct Table {
        var name: String
        var isStrict = false
        var isWithoutRowID = false
        var columns: [Column] = []
        var constraints: [String] = []
        var targets: [Target] = []
        var hasIntegerKey = false

        var quoted: String { name.quotedName }
        var sql: String {
            let options = (isWithoutRowID ? ["WITHOUT ROWID"] : []) + (isStrict ? ["STRICT"] : [])
            return "CREATE TABLE \(quoted)(\((columns.map(\.sql) + constraints).joined(separator: ", ")))"
                + (options.isEmpty ? "" : " " + options.joined(separator: ", "))
        }
    }

    var random: SplitMix
    /// For features that were added later: they must not change the draws of the others.
    private var later: SplitMix
    private let features: Set<SchemaFeature>
    private(set) var tables: [Table] = []
    private(set) var indexes: [String] = []
    /// Triggers, and the tables that they maintain.
    var triggers: [String] = []
    /// The column that a schema change renames, by table.
    var renamed: [String: String] = [:]
    private var identities: [String: [String]] = [:]
    private var names: Set<String> = []
    /// The features that occur in the schema.
    package private(set) var used: Set<SchemaFeature> = []

    package init(seed: UInt64, features: Set<SchemaFeature>) {
        random = SplitMix(seed: seed &* 0xd6e8_feb8_6659_fd93 &+ 7)
        later = SplitMix(seed: seed &* 0xa24b_aed4_963e_e407 &+ 11)
        self.features = features
    }

    /// - Parameter parts: the numbers of the parts of its text to leave out; see ``SchemaText``.
    package mutating func schema(without parts: [Int] = []) -> SimulatedSchema {
        let count = random.pick([1, 1, 2, 2, 2, 3, 3, 4])
        for number in 0..<count { makeTable(number) }
        for number in tables.indices { addColumns(number) }
        for number in tables.indices { addConstraints(number) }
        for number in tables.indices { addIndexes(number) }
        for number in tables.indices { addTriggers(number) }
        for number in tables.indices { addDerived(number) }
        if triggers.contains(where: { $0.hasPrefix("CREATE VIRTUAL") }) {
            // A statement that ends the transaction leaves a write to a virtual table open. See `CollidingWriter`.
            triggers = triggers.map { $0.replacing("RAISE(ROLLBACK", with: "RAISE(ABORT") }
        }
        let changes = changes()
        addReplacedNull()
        let sql = (tables.map(\.sql) + indexes + triggers).map { $0 + ";\n" }.joined()
        var schema = SimulatedSchema(sql: sql, identities: identities, without: parts)
        // Drops the identities of tables that are left out, or whose key is.
        schema.identities = identities.filter { name, _ in schema.sql.contains(name.quotedName) }
        schema.upgrades = changes.filter { $0.needs.allSatisfy(schema.sql.contains) }
        return schema
    }

    private func references(_ table: Table) -> String {
        "REFERENCES \(table.quoted)(\(table.columns[0].quoted))"
    }

    /// The type of a column that references one of this type. It must have the same affinity: if they differ, SQLite's
    /// own foreign-key checks convert the target's value, and pass the converted one to triggers (3.40.1). A STRICT
    /// table doesn't accept every name as a type, and in other tables ANY has numeric affinity.
    private func type(for table: Table, of target: Column) -> String {
        if table.isStrict { return Self.strictTypes.contains(target.type) ? target.type : "ANY" }
        return target.type == "ANY" ? "BLOB" : target.type
    }

    private static let strictTypes = ["INT", "INTEGER", "TEXT", "REAL", "BLOB", "ANY"]

    /// Always draws, so that disabling a feature changes little else.
    mutating func wants(_ feature: SchemaFeature, in of: Int) -> Bool {
        let isChosen = random.once(in: of) && features.contains(feature)
        if isChosen { used.insert(feature) }
        return isChosen
    }

    // MARK: Names

    // None starts with a quote or a bracket: SQLite's own foreign-key actions strip it (3.40.1).
    private static let odd = [
        "order", "a b", "é", "quo\"te", "NEW", "old", "select", "Straße", "🐦", "x'y", "c1", "a.b", "b]", "k`",
        "Rowid2",
        "values", "kind", "txn", "e", "excluded", "1st", "table", "İ", "a;b", "--", "%", "?1", ":x",
    ]

    private mutating func name(_ plain: String) -> String {
        let other = random.pick(Self.odd)
        let wanted = wants(.oddNames, in: 5) ? other : plain
        return names.insert(wanted.lowercased()).inserted ? wanted : plain
    }

    // MARK: Keys

    private mutating func makeTable(_ number: Int) {
        names = Set(tables.map { $0.name.lowercased() })
        var table = Table(name: name("t\(number + 1)"))
        names = []
        table.isStrict = wants(.strict, in: 6)
        switch random.below(8) {
        case 0 where features.contains(.naturalKeys), 1 where features.contains(.naturalKeys):
            used.insert(.naturalKeys)
            makeNaturalKey(&table)
        case 2 where features.contains(.compositeKeys), 3 where features.contains(.compositeKeys):
            used.insert(.compositeKeys)
            makeCompositeKey(&table)
        case 4 where features.contains(.declaredIdentities):
            used.insert(.declaredIdentities)
            makeIntegerKey(&table)
            var key = column("code", keyType(table))
            key.clauses = ["NOT NULL"] + collation(key) + ["UNIQUE"]
            key.isNotNull = true
            table.columns.append(key)
            table.targets.append(Target(columns: [key], isKey: false))
            identities[table.name] = [key.name]
        case 5 where tables.contains { $0.hasIntegerKey } && features.contains(.keyReferences):
            used.insert(.keyReferences)
            let target = random.pick(tables.filter { $0.hasIntegerKey })
            var key = column("id", "INTEGER")
            key.clauses = ["PRIMARY KEY", references(target)] + actions(nullable: false)
            key.isNotNull = true
            table.columns.append(key)
            table.hasIntegerKey = true
            table.targets.append(Target(columns: [key], isKey: true))
        default: makeIntegerKey(&table)
        }
        tables.append(table)
    }

    private mutating func column(_ plain: String, _ type: String) -> Column { Column(name: name(plain), type: type) }

    private mutating func makeIntegerKey(_ table: inout Table) {
        var key = column("id", "INTEGER")
        key.clauses = ["PRIMARY KEY"] + (wants(.autoincrement, in: 3) ? ["AUTOINCREMENT"] : [])
        table.columns.append(key)
        table.hasIntegerKey = true
        table.targets.append(Target(columns: [key], isKey: true))
    }

    private mutating func keyType(_ table: Table) -> String {
        let isReal = wants(.realKeys, in: 5)
        let type = random.pick(["INT", "INT", "BLOB", table.isStrict ? "ANY" : "NUMERIC", table.isStrict ? "ANY" : ""])
        return wants(.affinities, in: 3) ? type : isReal ? "REAL" : "TEXT"
    }

    private mutating func collation(_ column: Column) -> [String] {
        let name = random.pick(["NOCASE", "NOCASE", "RTRIM", "BINARY"])
        return wants(.collations, in: 3) && (column.isText || column.type.isEmpty) ? ["COLLATE \(name)"] : []
    }

    private mutating func makeNaturalKey(_ table: inout Table) {
        table.isWithoutRowID = wants(.withoutRowID, in: 3)
        var key = column("k", keyType(table))
        key.isNotNull = !wants(.nullKeys, in: 3) || table.isWithoutRowID
        key.clauses =
            collation(key) + ["PRIMARY KEY" + conflictClause(table)] + (key.isNotNull ? ["NOT NULL"] : [])
        table.columns.append(key)
        table.targets.append(Target(columns: [key], isKey: true))
    }

    private mutating func makeCompositeKey(_ table: inout Table) {
        table.isWithoutRowID = wants(.withoutRowID, in: 2)
        var keys: [Column] = []
        for plain in ["k", "l"] {
            var key = column(plain, keyType(table))
            key.isNotNull = !wants(.nullKeys, in: 5) || table.isWithoutRowID
            key.clauses = collation(key) + (key.isNotNull ? ["NOT NULL"] : [])
            if let target = tables.first(where: { $0.hasIntegerKey }), wants(.references, in: 3) {
                key.type = "INTEGER"
                key.isReference = true
                key.clauses = ["NOT NULL", references(target)] + actions(nullable: false)
                key.isNotNull = true
            }
            keys.append(key)
        }
        table.columns += keys
        table.constraints.append("PRIMARY KEY (\(Self.list(keys)))" + conflictClause(table))
        table.targets.append(Target(columns: keys, isKey: true))
    }

    private static func list(_ columns: [Column]) -> String { columns.map(\.quoted).joined(separator: ", ") }

    private mutating func conflictClause(_ table: Table) -> String {
        let kind = random.pick(["REPLACE", "IGNORE", "FAIL", "ABORT"])
        return wants(.conflictClauses, in: 8) ? " ON CONFLICT \(kind)" : ""
    }

    // MARK: Columns

    private mutating func addColumns(_ number: Int) {
        names = Set(tables[number].columns.map { $0.name.lowercased() })
        for place in 0..<(1 + random.below(4)) {
            let plain = ["a", "b", "c", "d"][place]
            if random.once(in: 3), let column = reference(plain, number) {
                tables[number].columns.append(column)
            } else {
                tables[number].columns.append(plainColumn(plain, number))
            }
        }
    }

    mutating func type(_ table: Table) -> String {
        if table.isStrict { return random.pick(["INT", "INTEGER", "TEXT", "TEXT", "REAL", "BLOB", "ANY"]) }
        let plain = random.pick(["INTEGER", "TEXT", "TEXT"])
        let other = random.pick([
            "REAL", "NUMERIC", "BLOB", "", "VARCHAR(10)", "DOUBLE", "BOOLEAN", "BIGINT", "DATETIME",
        ])
        return wants(.affinities, in: 3) ? other : plain
    }

    private mutating func plainColumn(_ plain: String, _ number: Int) -> Column {
        var column = column(plain, type(tables[number]))
        let isUnique = wants(.uniqueColumns, in: 4)
        column.isNotNull = wants(.notNull, in: 4)
        if column.isNotNull { column.clauses.append("NOT NULL") }
        let value = column.isNumber ? random.pick(["0", "1", "2.0", "-1"]) : column.isText ? "'k1'" : "x'01'"
        if wants(.defaults, in: column.isNotNull ? 2 : 5), !(tables[number].isStrict && value == "2.0") {
            column.clauses.append("DEFAULT \(value)")
        }
        column.clauses += collation(column)
        let check = check(of: column)
        if wants(.checks, in: 6) { column.clauses.append("CHECK (\(check))") }
        if isUnique {
            column.clauses.append("UNIQUE" + conflictClause(tables[number]))
            tables[number].targets.append(Target(columns: [column], isKey: false))
        }
        return column
    }

    private mutating func check(of column: Column) -> String {
        let c = column.quoted
        return column.isText
            ? random.pick(["length(\(c)) < 4", "\(c) <> 'k2'", "\(c) > 'k'", "\(c) NOT LIKE 'k3%'"])
            : random.pick(["\(c) < 3", "\(c) <> 1", "\(c) BETWEEN 0 AND 4", "typeof(\(c)) <> 'blob'"])
    }

    // MARK: References

    private mutating func reference(_ plain: String, _ number: Int) -> Column? {
        guard let (table, target) = target(from: number, count: 1) else { return nil }
        let to = target.columns[0]
        var column = column(plain, type(for: tables[number], of: to))
        column.isReference = true
        let isNeeded = wants(.notNull, in: 3)
        let isOwn = table == number && isNeeded && features.contains(.neededSelves)
        if isOwn { used.insert(.neededSelves) }
        column.isNotNull = isNeeded && (table < number || isOwn)
        if column.isNotNull { column.clauses.append("NOT NULL") }
        if wants(.uniqueColumns, in: 5) { column.clauses.append("UNIQUE") }
        column.clauses += ["REFERENCES \(tables[table].quoted)(\(to.quoted))"] + actions(nullable: !column.isNotNull)
        return column
    }

    /// A possible target for a reference of this many columns.
    private mutating func target(from number: Int, count: Int) -> (table: Int, target: Target)? {
        let other = random.below(tables.count)
        let kind: SchemaFeature =
            other == number ? .selfReferences : other > number ? .cyclicReferences : .references
        guard features.contains(kind), features.contains(.references) else { return nil }
        // Rows without a stable ID exist on one node only, and rows that refer to them are pending on all others.
        guard tables[other].hasIntegerKey || tables[other].targets[0].columns.allSatisfy(\.isNotNull) else {
            return nil
        }
        let found = tables[other].targets.filter {
            $0.columns.count == count && ($0.isKey || features.contains(.uniqueReferences))
        }
        guard !found.isEmpty else { return nil }
        let target = random.pick(found)
        used.formUnion(target.isKey ? [kind] : [kind, .uniqueReferences])
        return (other, target)
    }

    private mutating func actions(nullable: Bool) -> [String] {
        var actions: [String] = []
        let all = ["CASCADE", "CASCADE", "RESTRICT", "NO ACTION", "SET DEFAULT", "SET NULL", "SET NULL"]
        for event in ["DELETE", "UPDATE"] {
            let action = random.pick(nullable ? all : ["CASCADE", "CASCADE", "RESTRICT", "NO ACTION"])
            if wants(.actions, in: 2) { actions.append("ON \(event) \(action)") }
        }
        if wants(.deferred, in: 5) { actions.append("DEFERRABLE INITIALLY DEFERRED") }
        return actions
    }

    // MARK: Constraints of tables, and indexes

    private mutating func addConstraints(_ number: Int) {
        let table = tables[number]
        names = Set(table.columns.map { $0.name.lowercased() })
        let all = Array(table.columns.dropFirst(table.hasIntegerKey ? 1 : table.targets[0].columns.count))
        let own = all.filter { !$0.isReference }
        if wants(.compositeReferences, in: 3), let (other, target) = target(from: number, count: 2) {
            var columns: [Column] = []
            for (place, to) in target.columns.enumerated() {
                var column = column(["r", "s"][place], type(for: table, of: to))
                column.isReference = true
                column.isNotNull = wants(.notNull, in: 4) && other < number
                if column.isNotNull { column.clauses.append("NOT NULL") }
                columns.append(column)
            }
            tables[number].columns += columns
            let list = actions(nullable: !columns.contains(where: \.isNotNull)).map { " " + $0 }.joined()
            let to = "\(tables[other].quoted)(\(Self.list(target.columns)))"
            tables[number].constraints.append("FOREIGN KEY (\(Self.list(columns))) REFERENCES \(to)\(list)")
        }
        if all.count >= 2, wants(.compositeUnique, in: 4) {
            let columns = random.some(all, 2)
            tables[number].constraints.append("UNIQUE (\(Self.list(columns)))" + conflictClause(table))
        }
        let numbers = own.filter(\.isNumber)
        if numbers.count >= 2, wants(.rowChecks, in: 2) {
            let (a, b) = (numbers[0].quoted, numbers[1].quoted)
            tables[number].constraints.append(
                "CHECK (\(random.pick(["\(a) <= \(b)", "\(a) + \(b) < 6", "\(a) <> \(b)", "\(a) = 0 OR \(b) > 0"])))")
        } else if own.count >= 2, wants(.rowChecks, in: 5) {
            tables[number].constraints.append(
                "CHECK (\(own[0].quoted) IS NOT NULL OR \(own[1].quoted) IS NOT NULL)")
        }
        if let from = own.first, wants(.generatedColumns, in: 5) {
            let source = from.quoted
            let isStored = random.once(in: 2)
            let expression =
                from.isText
                ? random.pick(["lower(\(source))", "length(\(source))", "substr(\(source), 1, 1)"])
                : random.pick(["abs(\(source))", "coalesce(\(source), 0)", "typeof(\(source))", "\(source) IS NULL"])
            var column = column("g", tables[number].isStrict ? "ANY" : random.pick(["TEXT", "INTEGER", ""]))
            column.clauses = ["AS (\(expression)) \(isStored ? "STORED" : "VIRTUAL")"]
            if wants(.uniqueColumns, in: 2) { column.clauses.append("UNIQUE") }
            tables[number].columns.append(column)
        }
    }

    private mutating func addIndexes(_ number: Int) {
        let table = tables[number]
        let own = table.columns.filter { column in !column.clauses.contains { $0.hasPrefix("AS (") } }
        func add(_ isUnique: Bool, _ terms: String, _ condition: String = "") {
            let kind = isUnique ? "UNIQUE INDEX" : "INDEX"
            indexes.append("CREATE \(kind) i\(indexes.count + 1) ON \(table.quoted)(\(terms))\(condition)")
        }
        let values = own.filter { !$0.isReference && !($0.clauses.contains("PRIMARY KEY") && table.hasIntegerKey) }
        guard !values.isEmpty else { return }
        let column = random.pick(values)
        let (c, other) = (column.quoted, random.pick(values).quoted)
        if wants(.expressionIndexes, in: 6) {
            add(
                true,
                column.isText
                    ? random.pick(["lower(\(c))", "substr(\(c), 1, 2)", "\(c) || ''", "length(\(c)), \(other)"])
                    : random.pick(["abs(\(c))", "coalesce(\(c), 0)", "CAST(\(c) AS TEXT)", "typeof(\(c)), \(other)"]))
        }
        if wants(.partialIndexes, in: 6) {
            add(
                true, random.pick(own).quoted,
                random.pick([" WHERE \(other) IS NOT NULL", " WHERE \(c) <> 'k1'", " WHERE \(other) > 1"]))
        }
        if column.isText, wants(.collations, in: 8) { add(true, "\(c) COLLATE NOCASE DESC") }
        if wants(.plainIndexes, in: 4) { add(false, "\(other), \(c) DESC") }
    }

    /// Adds a column with a unique key and a default to one of the tables, in addition to all that was drawn.
    private mutating func addReplacedNull() {
        guard features.contains(.replacedNulls) else { return }
        used.insert(.replacedNulls)
        let number = later.below(tables.count)
        let table = tables[number]
        let others = table.columns.filter { column in
            !column.isReference && !column.clauses.contains { $0.hasPrefix("AS (") }
                && !(column.clauses.contains("PRIMARY KEY") && table.hasIntegerKey)
        }
        let isText = later.once(in: 2)
        var column = Column(name: "z", type: isText ? "TEXT" : "INTEGER")
        column.isNotNull = true
        column.clauses = ["NOT NULL", "DEFAULT \(isText ? "'k1'" : "1")"]
        let kind = later.below(4)
        let other = others.isEmpty ? nil : later.pick(others)
        var key: String?
        switch kind {
        case 0: key = other.map { "(\($0.quoted), z)" }
        case 1 where features.contains(.partialIndexes): key = other.map { "(z) WHERE \($0.quoted) IS NOT NULL" }
        case 2 where features.contains(.expressionIndexes): key = isText ? "(lower(z))" : "(abs(z))"
        default: break
        }
        if let key {
            indexes.append("CREATE UNIQUE INDEX i\(indexes.count + 1) ON \(table.quoted)\(key)")
        } else {
            column.clauses.append("UNIQUE")
        }
        tables[number].columns.append(column)
    }
}
