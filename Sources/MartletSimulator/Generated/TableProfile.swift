package import GRDB
import MartletStore

/// The properties of a table that matter for writing colliding rows.
package struct TableProfile: Sendable {
    struct Column: Sendable {
        var name: String
        var type: String
        var isNotNull: Bool
        var hasDefault: Bool
        /// True if the column is part of the primary key.
        var isKey: Bool
        /// True if the column should have few values: it is part of a unique key, a CHECK reads it, or others refer to
        /// it.
        var isNarrow: Bool
        /// True if other rows refer to it.
        var isTarget = false
        var quoted: String { name.quotedName }
    }

    struct Reference: Sendable {
        var columns: [String]
        var target: String
        var targetColumns: [String]
    }

    var name: String
    var columns: [Column]
    var integerKey: String?
    var key: [String]
    var references: [Reference]
    /// Unique keys that an upsert can name as its target.
    var upsertKeys: [[String]]
    /// The columns of each CHECK that reads several: edits that are valid individually may violate it together.
    var checkedTogether: [[String]]
    var hasExpressionKey: Bool
    /// True if the schema itself makes rows replace others.
    var replacesByItself: Bool
    var isReferenced = false
    /// True if other rows refer to its rows without a delete action.
    var isReferencedLoosely = false
    /// The numbers and texts in the table's SQL, as SQL.
    var numbers: [Int] = []
    var texts: [String] = []
    /// True if its SQL ignores case, or trailing spaces.
    var foldsCase: Bool
    var foldsBlanks: Bool

    var quoted: String { name.quotedName }
    /// The columns that identify a row of the table.
    var rowKey: [String] { key.isEmpty ? ["rowid"] : key.map(\.quotedName) }

    func column(_ name: String) -> Column? { columns.first { $0.name.lowercased() == name.lowercased() } }

    /// All of the user's tables, without the simulation's own.
    package static func all(_ db: Database) throws -> [TableProfile] {
        let inspector = TableInspector(db)
        let tables = try inspector.userTables().filter {
            !$0.hasPrefix("sim_") && !$0.hasPrefix(SimulatedSchema.keptPrefix) && $0 != TableRebuilder.temporary
        }.compactMap { try inspector.table($0) }
            .filter { $0.kind == "table" }
        var profiles = try tables.map { try profile($0, sql(db, $0.name)) }
        for key in tables.flatMap(\.foreignKeys) {
            guard let number = profiles.firstIndex(where: { $0.name.lowercased() == key.target.lowercased() }) else {
                continue
            }
            profiles[number].isReferenced = true
            let names = Set(key.targetColumns.map { $0.lowercased() })
            for index in profiles[number].columns.indices
            where names.contains(profiles[number].columns[index].name.lowercased()) {
                profiles[number].columns[index].isTarget = true
                profiles[number].columns[index].isNarrow = true
            }
        }
        for index in profiles.indices {
            profiles[index].isReferencedLoosely = try isReferencedLoosely(db, profiles[index].name)
        }
        return profiles
    }

    private static func isReferencedLoosely(_ db: Database, _ table: String) throws -> Bool {
        try Bool.fetchOne(
            db,
            sql: """
                SELECT EXISTS (SELECT 1 FROM pragma_table_list AS t, pragma_foreign_key_list(t.name) AS k
                WHERE t.schema = 'main' AND k."table" = ? COLLATE NOCASE AND k.on_delete = 'NO ACTION')
                """, arguments: [table]) ?? false
    }

    private static func sql(_ db: Database, _ table: String) throws -> String {
        try String.fetchAll(
            db,
            sql: """
                SELECT sql FROM main.sqlite_schema
                WHERE type IN ('table', 'index') AND tbl_name = ? AND sql IS NOT NULL
                """,
            arguments: [table]
        ).joined(separator: "\n")
    }

    private static func profile(_ table: TableInspector.Table, _ sql: String) -> TableProfile {
        let claimed = table.uniqueKeys.reduce(into: Set<String>()) { $0.formUnion($1.sources) }
        let checked = table.checks.reduce(into: Set<String>()) { $0.formUnion($1) }
        let settable = Set(table.columns.filter { !$0.isGenerated }.map(\.name))
        let upper = sql.uppercased()
        var profile = TableProfile(
            name: table.name,
            columns: table.columns.filter { !$0.isGenerated }.map { column in
                let name = column.name.lowercased()
                return Column(
                    name: column.name, type: column.type.uppercased(), isNotNull: column.isNotNull,
                    hasDefault: column.defaultSQL != nil, isKey: column.keyPosition > 0,
                    isNarrow: claimed.contains(name) || checked.contains(name) || column.keyPosition > 0)
            },
            integerKey: table.integerKey, key: table.primaryKey,
            references: table.foreignKeys.map {
                Reference(columns: $0.columns, target: $0.target, targetColumns: $0.targetColumns)
            },
            upsertKeys: table.uniqueKeys.filter {
                $0.condition == nil && !$0.hasExpression && settable.isSuperset(of: $0.columns)
            }.map(\.columns) + (table.integerKey.map { [[$0]] } ?? []),
            checkedTogether: table.checks.map { check in
                table.columns.filter { !$0.isGenerated && check.contains($0.name.lowercased()) }.map(\.name)
            }.filter { $0.count > 1 },
            hasExpressionKey: table.uniqueKeys.contains { key in
                key.hasExpression || !settable.isSuperset(of: key.columns)
            },
            replacesByItself: upper.contains("CONFLICT REPLACE"),
            foldsCase: ["NOCASE", "LOWER", "UPPER", "LIKE"].contains(where: upper.contains),
            foldsBlanks: ["RTRIM", "TRIM"].contains(where: upper.contains))
        profile.readLiterals(sql)
        return profile
    }

    /// Literals are the values at which a CHECK or the condition of a partial index changes.
    private mutating func readLiterals(_ sql: String) {
        var before = ""
        for token in SchemaText.tokens(of: sql) {
            if let number = Int(token), abs(number) < 1_000_000 {
                numbers.append(before == "-" ? -number : number)
            } else if token.first == "'", token.utf8.count < 30, !token.contains("%") {
                texts.append(String(token))
            }
            before = String(token)
        }
        numbers = Array(Set(numbers)).sorted()
        texts = Array(Set(texts)).sorted()
    }
}
