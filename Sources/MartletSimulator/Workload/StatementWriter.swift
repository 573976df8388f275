import GRDB
import MartletStore

/// Writes random statements for tables of any shape. Conditions contain the current values of rows, so that a trace is
/// readable.
struct StatementWriter {
    var random: SplitMix
    let db: Database
    let shapes: [TableShape]
    /// True if SQLite enforces foreign keys. Otherwise, nothing is done that would leave a reference without its
    /// target.
    let keepsReferences: Bool

    /// Nil if there is nothing to apply a statement to.
    mutating func statement() throws -> String? {
        let table = random.pick(shapes)
        switch random.below(20) {
        case 0...8: return try insert(table)
        case 9...15: return try update(table)
        case 16: return try move(table)
        default:
            guard keepsReferences || !table.isReferenced, let row = try row(of: table) else { return nil }
            return "DELETE FROM \(table.name.quotedName) WHERE \(row)"
        }
    }

    private mutating func insert(_ table: TableShape) throws -> String? {
        var names: [String] = []
        var values: [String] = []
        for column in table.columns {
            if column.name == table.integerKey, column.reference == nil {
                // Sometimes uses the same numbers on several nodes.
                guard random.once(in: 8) else { continue }
                names.append(column.name)
                values.append("\(1 + random.below(12))")
                continue
            }
            if !column.isNotNull, !column.isKey, random.once(in: 5) { continue }
            guard let value = try value(column) else { return nil }
            names.append(column.name)
            values.append(value)
        }
        let replaces = random.once(in: 4) && (keepsReferences || !table.isReferenced)
        let verb = replaces ? "INSERT OR REPLACE" : "INSERT"
        guard !names.isEmpty else { return "\(verb) INTO \(table.name.quotedName) DEFAULT VALUES" }
        let list = names.map(\.quotedName).joined(separator: ", ")
        return "\(verb) INTO \(table.name.quotedName)(\(list)) VALUES (\(values.joined(separator: ", ")))"
    }

    private mutating func update(_ table: TableShape) throws -> String? {
        let columns = table.columns.filter { !$0.isKey }
        guard !columns.isEmpty, let row = try row(of: table) else { return nil }
        return try update(table, (0...random.below(2)).map { _ in random.pick(columns) }, row)
    }

    /// Changes a row's key.
    private mutating func move(_ table: TableShape) throws -> String? {
        let columns = table.columns.filter { $0.isKey }
        guard keepsReferences, !columns.isEmpty, let row = try row(of: table) else { return nil }
        return try update(table, [random.pick(columns)], row)
    }

    private mutating func update(
        _ table: TableShape, _ columns: [TableShape.Column], _ row: String
    ) throws -> String? {
        var settings: [String] = []
        for column in columns where !settings.contains(where: { $0.hasPrefix(column.name.quotedName + " ") }) {
            guard let value = try value(column) else { return nil }
            settings.append("\(column.name.quotedName) = \(value)")
        }
        let replaces = random.once(in: 6) && (keepsReferences || !table.isReferenced)
        let verb = replaces ? "UPDATE OR REPLACE" : "UPDATE"
        return "\(verb) \(table.name.quotedName) SET \(settings.joined(separator: ", ")) WHERE \(row)"
    }

    /// Nil if a target is required and there is none.
    private mutating func value(_ column: TableShape.Column) throws -> String? {
        let mayBeNull = !column.isNotNull && !column.isKey
        if mayBeNull, random.once(in: 4) { return "NULL" }
        guard let reference = column.reference else {
            return ValueWriter.literal(column.type, isUnique: column.isUnique, &random)
        }
        let target = reference.table.quotedName
        let name = reference.column == "rowid" ? "rowid" : reference.column.quotedName
        let found = try pick("SELECT quote(\(name)) FROM \(target) WHERE \(name) IS NOT NULL ORDER BY \(name)", target)
        return found?.first ?? (mayBeNull ? "NULL" : nil)
    }

    /// A condition that matches one row.
    private mutating func row(of table: TableShape) throws -> String? {
        let key = table.key.isEmpty ? ["rowid"] : table.key
        let names = key.map { $0 == "rowid" ? $0 : $0.quotedName }
        let list = names.map { "quote(\($0))" }.joined(separator: ", ")
        let order = names.joined(separator: ", ")
        let target = table.name.quotedName
        guard let found = try pick("SELECT \(list) FROM \(target) ORDER BY \(order)", target) else { return nil }
        return zip(names, found).map { "\($0) = \($1)" }.joined(separator: " AND ")
    }

    private mutating func pick(_ query: String, _ table: String) throws -> [String]? {
        let count = try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table)") ?? 0
        let place = random.below(count)
        guard count > 0,
            let row = try Row.fetchOne(db, sql: query + " LIMIT 1 OFFSET \(place)")
        else { return nil }
        return row.databaseValues.map { String.fromDatabaseValue($0) ?? "NULL" }
    }
}
