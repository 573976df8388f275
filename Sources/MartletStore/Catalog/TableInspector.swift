import Foundation
package import GRDB

/// Reads the structure of tables from SQLite.
package struct TableInspector {
    package struct Column: Equatable {
        package var name: String
        package var type: String
        package var isNotNull: Bool
        package var keyPosition: Int
        package var isGenerated: Bool
        /// The SQL of the default value, if there is one.
        package var defaultSQL: String?

        /// Whether the default is always the same value: it neither asks for the time nor calls a function.
        package var isDefaultConstant: Bool {
            guard let defaultSQL else { return true }
            if defaultTime != nil { return false }
            return SQLReader(defaultSQL).tokens.allSatisfy { token in
                if case .word(let word) = token {
                    !word.uppercased().hasPrefix("CURRENT_")
                } else {
                    token != .symbol("(")
                }
            }
        }

        /// The SQL of the default, if it gives the same value everywhere in one statement and every SQLite can compute
        /// it: it calls only functions that are always there and depend on nothing else. Nil if there is none.
        var predictableDefaultSQL: String? {
            guard let defaultSQL, defaultSQL.uppercased() != "NULL" else { return nil }
            let tokens = SQLReader(defaultSQL).tokens
            let isPredictable = tokens.indices.allSatisfy { index in
                guard tokens[index] == .symbol("("), index > 0, let name = tokens[index - 1].name else { return true }
                return Self.predictable.contains(name.lowercased())
            }
            return isPredictable ? defaultSQL : nil
        }

        /// Functions of every SQLite that return the same value throughout a statement
        /// (https://sqlite.org/lang_corefunc.html, https://sqlite.org/lang_datefunc.html), and `CAST`.
        private static let predictable: Set<String> = [
            "abs", "cast", "char", "coalesce", "date", "datetime", "hex", "ifnull", "iif", "instr",
            "julianday", "length", "lower", "ltrim", "nullif", "printf", "quote", "replace", "round",
            "rtrim", "sign", "strftime", "substr", "time", "trim", "typeof", "unicode", "upper", "zeroblob",
        ]

        /// The SQLite function that computes the default from a time in seconds, if the default is the time of the
        /// insert.
        package var defaultTime: String? {
            switch defaultSQL?.uppercased() {
            case "CURRENT_TIMESTAMP": "datetime"
            case "CURRENT_DATE": "date"
            case "CURRENT_TIME": "time"
            default: nil
            }
        }
    }

    package struct Table {
        package var name: String
        package var kind: String
        package var isWithoutRowID: Bool
        package var isStrict: Bool
        package var columns: [Column]
        package var integerKey: String?
        var isAutoincrement = false
        package var uniqueKeys: [UniqueKey]
        package var foreignKeys: [ForeignKey]
        /// The settable columns that each CHECK reads, including those behind generated columns, in lower case.
        package var checks: [Set<String>] = []
        /// The settable columns from which each generated column is computed, all in lower case.
        var generated: [String: Set<String>] = [:]

        /// True if two columns have names that differ only in their Unicode encoding. Swift compares text by canonical
        /// equivalence, and so does the catalog; SQLite doesn't.
        var hasEqualColumnNames: Bool { Set(columns.map(\.name)).count < columns.count }

        /// The primary key's columns in order. Empty if there is none.
        package var primaryKey: [String] {
            columns.filter { $0.keyPosition > 0 }.sorted { $0.keyPosition < $1.keyPosition }.map(\.name)
        }

        /// Returns whether these are the columns of the primary key, or of a unique key that covers all rows.
        func isUnique(_ names: [String]) -> Bool {
            Set(primaryKey) == Set(names)
                || uniqueKeys.contains { Set($0.columns) == Set(names) && $0.condition == nil && !$0.hasExpression }
        }
    }

    package let db: Database

    package init(_ db: Database) { self.db = db }

    /// Returns the user tables of the main schema.
    package func userTables() throws -> [String] {
        try Row.fetchAll(db, sql: "PRAGMA main.table_list").compactMap { row in
            let name: String = row["name"]
            guard row["schema"] == "main", row["type"] == "table", !name.hasPrefix("sqlite_"),
                !name.hasPrefix(InternalName.prefix)
            else { return nil }
            return name
        }.sorted()
    }

    /// Returns the virtual tables of the main schema, without the shadow tables that hold their content.
    func virtualTables() throws -> [String] {
        try String.fetchAll(
            db, sql: "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'virtual' ORDER BY name")
    }

    /// Returns the exact name of the table with this name in any case, because SQLite ignores case.
    func name(ignoringCase name: String) throws -> String? {
        try String.fetchOne(
            db.cachedStatement(
                sql: "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name = ? COLLATE NOCASE"),
            arguments: [name])
    }

    /// Returns the exact name of the table with this name in any case, and its kind: `table`, `view`, `virtual` or
    /// `shadow`. The table need not be readable here: the columns of a virtual table are known only with its module,
    /// and a full-text index only with its tokenizer.
    func kind(of name: String) throws -> (name: String, kind: String)? {
        let found = try Row.fetchAll(db, sql: "SELECT name, type FROM pragma_table_list WHERE schema = 'main'")
            .map { (name: $0["name"] as String, kind: $0["type"] as String) }
            .filter { $0.name.lowercased() == name.lowercased() }
        return found.first { $0.name == name } ?? found.first
    }

    /// Returns the table, or nil if there is none of that name.
    package func table(_ name: String) throws -> Table? {
        let list = try Row.fetchAll(
            db.cachedStatement(sql: "SELECT * FROM pragma_table_list(?1) WHERE schema = 'main' AND name = ?1"),
            arguments: [name])
        guard let entry = list.first else { return nil }
        let kind: String = entry["type"]
        guard !Self.isReadElsewhere(kind) else {
            return Table(
                name: entry["name"], kind: kind, isWithoutRowID: false, isStrict: false, columns: [], uniqueKeys: [],
                foreignKeys: [])
        }
        let columns = try Row.fetchAll(
            db.cachedStatement(sql: "SELECT * FROM pragma_table_xinfo(?, 'main') ORDER BY cid"), arguments: [name]
        ).compactMap { row -> Column? in
            let hidden: Int = row["hidden"]
            guard hidden != 1 else { return nil }
            return Column(
                name: row["name"], type: row["type"], isNotNull: row["notnull"], keyPosition: row["pk"],
                isGenerated: hidden == 2 || hidden == 3,
                defaultSQL: (row["dflt_value"] as String?).map(Self.expression))
        }
        let indexes = try Row.fetchAll(
            db.cachedStatement(sql: "SELECT * FROM pragma_index_list(?, 'main') WHERE \"unique\" ORDER BY name"),
            arguments: [name])
        let key = columns.filter { $0.keyPosition > 0 }
        let hasKeyIndex = indexes.contains { $0["origin"] == "pk" }
        let isWithoutRowID: Bool = entry["wr"]
        let integerKey =
            key.count == 1 && !hasKeyIndex && !isWithoutRowID && key[0].type.uppercased() == "INTEGER"
            ? key[0].name : nil
        let sql = try String.fetchOne(
            db.cachedStatement(sql: "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?"),
            arguments: [name])
        let reader = SQLReader(sql ?? "")
        let sources = Sources(reader.generated, columns)
        return Table(
            name: entry["name"], kind: kind, isWithoutRowID: isWithoutRowID, isStrict: entry["strict"],
            columns: columns, integerKey: integerKey, isAutoincrement: reader.isAutoincrement,
            uniqueKeys: try indexes.map { try uniqueKey($0, columns, sources) }, foreignKeys: try foreignKeys(name),
            checks: reader.checks.map(sources.columns), generated: sources.ofGenerated)
    }

    /// Returns the SQL of the default. SQLite reads a bare name there, quoted or not, as text (`DEFAULT pending`).
    private static func expression(_ defaultSQL: String) -> String {
        // A comment at its end must not hide what comes after it.
        let whole = defaultSQL.contains("--") ? defaultSQL + "\n" : defaultSQL
        let tokens = SQLReader.placed(defaultSQL).map(\.token)
        guard tokens.count == 1, let token = tokens[0], let name = token.name else { return whole }
        let keywords = ["NULL", "TRUE", "FALSE", "CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME"]
        if case .word(let word) = token, keywords.contains(word.uppercased()) { return whole }
        return "'\(name.replacing("'", with: "''"))'"
    }

    /// The settable columns from which the values of a table's columns are computed.
    private struct Sources {
        private let settable: Set<String>
        private let generated: [String: Set<String>]

        init(_ generated: [String: Set<String>], _ columns: [Column]) {
            settable = Set(columns.filter { !$0.isGenerated }.map { $0.name.lowercased() })
            let names = Set(columns.filter(\.isGenerated).map { $0.name.lowercased() })
            self.generated = generated.filter { names.contains($0.key) }
        }

        /// The settable columns behind each generated column.
        var ofGenerated: [String: Set<String>] { generated.mapValues(columns) }

        /// Returns the settable columns among the names, and those behind generated ones.
        func columns(_ names: Set<String>) -> Set<String> {
            var found: Set<String> = []
            var seen: Set<String> = []
            var open = names
            while let name = open.popFirst() {
                guard seen.insert(name).inserted else { continue }
                if settable.contains(name) { found.insert(name) }
                open.formUnion(generated[name] ?? [])
            }
            return found
        }
    }

    private func uniqueKey(_ index: Row, _ tableColumns: [Column], _ sources: Sources) throws -> UniqueKey {
        let name: String = index["name"]
        let parts = try Row.fetchAll(
            db.cachedStatement(
                sql: "SELECT cid, name, coll FROM pragma_index_xinfo(?, 'main') WHERE key ORDER BY seqno"),
            arguments: [name])
        let sql = try String.fetchOne(
            db.cachedStatement(sql: "SELECT sql FROM main.sqlite_schema WHERE type = 'index' AND name = ?"),
            arguments: [name])
        let condition = index["partial"] as Bool ? sql.flatMap(Self.condition) : nil
        let columns: [String] = parts.compactMap { $0["name"] }
        let terms = parts.contains { ($0["cid"] as Int) == Self.expression } ? IndexTerms(sql ?? "").terms : []
        var expressions: [Int: String] = [:]
        for (place, part) in parts.enumerated() where part["cid"] == Self.expression {
            expressions[place] = terms.indices.contains(place) ? terms[place] : "NULL"
        }
        let names = Set(columns.map { $0.lowercased() })
        let named = expressions.isEmpty ? [] : SQLReader(sql ?? "").indexed
        return UniqueKey(
            index: name, columns: columns, collations: parts.map { $0["coll"] ?? "BINARY" }, condition: condition,
            expressions: expressions,
            expressionColumns: tableColumns.map(\.name).filter { named.contains($0.lowercased()) },
            sources: sources.columns(names.union(named)))
    }

    /// The value that SQLite returns instead of a column's number for an expression of an index.
    private static let expression = -2

    /// Returns the SQL after the first `WHERE` outside of quotes and parentheses. A name may begin with that word.
    static func condition(of sql: String) -> String? {
        var depth = 0
        for (token, range) in SQLReader.placed(sql) {
            switch token {
            case .symbol("("): depth += 1
            case .symbol(")"): depth -= 1
            case let token? where depth == 0 && token.isWord("WHERE"): return String(sql[range.upperBound...])
            default: break
            }
        }
        return nil
    }

    /// Returns the end of the comment at the start of the text, if there is one.
    static func comment(_ text: Substring) -> Substring.Index? {
        if text.hasPrefix("--") { return text.firstIndex(where: \.isNewline) ?? text.endIndex }
        guard text.hasPrefix("/*") else { return nil }
        return text.range(of: "*/")?.upperBound ?? text.endIndex
    }

    /// Returns true for what perhaps only another program can read, because it has the functions or the module.
    private static func isReadElsewhere(_ kind: String?) -> Bool { kind == "view" || kind == "virtual" }

    /// Returns the kind of a table, without its columns. Nil if there is none.
    package func kind(_ name: String) throws -> String? {
        try String.fetchOne(
            db.cachedStatement(sql: "SELECT type FROM pragma_table_list(?) WHERE schema = 'main'"), arguments: [name])
    }

    private func foreignKeys(_ table: String) throws -> [ForeignKey] {
        let rows = try Row.fetchAll(
            db.cachedStatement(sql: "SELECT * FROM pragma_foreign_key_list(?, 'main') ORDER BY id, seq"),
            arguments: [table])
        var keys: [Int: ForeignKey] = [:]
        for row in rows {
            let id: Int = row["id"]
            var key = keys[id] ?? ForeignKey(columns: [], target: row["table"], targetColumns: [])
            key.columns.append(row["from"])
            key.followsUpdates = !["NO ACTION", "RESTRICT"].contains(row["on_update"] as String)
            key.followsDeletes = row["on_delete"] as String == "CASCADE"
            if let to: String = row["to"] { key.targetColumns.append(to) }
            keys[id] = key
        }
        return try keys.sorted { $0.key < $1.key }.map { _, key in
            guard key.targetColumns.isEmpty, try !Self.isReadElsewhere(kind(key.target)) else { return key }
            var key = key
            key.targetColumns = try String.fetchAll(
                db.cachedStatement(sql: "SELECT name FROM pragma_table_xinfo(?, 'main') WHERE pk > 0 ORDER BY pk"),
                arguments: [key.target])
            return key
        }
    }
}
