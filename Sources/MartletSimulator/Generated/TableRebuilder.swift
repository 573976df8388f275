import GRDB
import MartletStore

/// Rebuilds a table like a migration tool: another table gets the rows and the name, and indexes and triggers are
/// recreated. The capture triggers are lost with the old table.
struct TableRebuilder {
    /// The order in which the tables are renamed.
    enum Way: CaseIterable {
        /// The new table first gets a temporary name (Django, Alembic).
        case newName
        /// The old table gets a temporary name.
        case oldName
    }

    let db: Database
    let table: TableProfile
    static let temporary = "rebuilt_for_a_while"
    static let dropCopy = "DROP TABLE IF EXISTS \(temporary)"

    /// Returns true if the first two statements create the new table, and leave the old one unchanged.
    static func beginsWithCopy(_ statements: [String]) -> Bool { statements.first?.hasPrefix("CREATE") ?? false }

    static func hasCopy(_ db: Database) throws -> Bool {
        try Bool.fetchOne(
            db, sql: "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?)", arguments: [temporary]) ?? false
    }

    /// Returns true if the user's triggers react to changes of rows.
    static func hasTriggers(_ db: Database, _ table: TableProfile) throws -> Bool {
        try Bool.fetchOne(
            db,
            sql: """
                SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ? AND name NOT GLOB ?)
                """, arguments: [table.name, InternalName.prefix + "*"]) ?? false
    }

    /// The integer key, and the SQL of its new value: rows get numbers that are free, or that others had. Nil if there
    /// is no integer key, or if it refers to another row.
    static func renumbered(_ table: TableProfile, _ chance: Chance) -> (column: String, sql: String)? {
        guard let key = table.integerKey, !table.references.contains(where: { $0.columns.contains(key) }) else {
            return nil
        }
        let quoted = key.quotedName
        let ways = ["\(quoted) - 1", "\(quoted) + 1", "5 - \(quoted)", "-\(quoted)", "\(quoted) % 3 + 1"]
        return chance.pick(ways) { $0 }.map { (key, $0) }
    }

    /// - Parameters:
    ///   - way: applied only if the table's SQL allows another name.
    ///   - condition: the condition for rows to keep.
    ///   - changed: a column, and the SQL of its new value.
    /// - Returns: the statements, in order.
    func statements(_ way: Way, keeping condition: String, changing changed: (column: String, sql: String)? = nil)
        throws -> [String]
    {
        let made = try Row.fetchAll(
            db,
            sql: """
                SELECT type, sql FROM sqlite_schema WHERE tbl_name = ? AND sql IS NOT NULL AND name NOT GLOB ?
                ORDER BY type = 'table' DESC, rowid
                """, arguments: [table.name, InternalName.prefix + "*"])
        guard let sql = made.first?["sql"] as String? else { return [] }
        let columns = try String.fetchAll(
            db, sql: "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", arguments: [table.name])
        let names = columns.map(\.quotedName).joined(separator: ", ")
        let values = columns.map { $0 == changed?.column ? changed?.sql ?? "NULL" : $0.quotedName }
        let head = "CREATE TABLE \(table.quoted)"
        let isRenamed = way == .newName && sql.hasPrefix(head)
        let from = isRenamed ? table.quoted : Self.temporary
        let to = isRenamed ? Self.temporary : table.quoted
        let copy =
            "INSERT INTO \(to)(\(names)) SELECT \(values.joined(separator: ", ")) FROM \(from) WHERE \(condition)"
        let others = made.dropFirst().map { $0["sql"] as String }
        if isRenamed {
            return [
                "CREATE TABLE \(Self.temporary)" + sql.dropFirst(head.count), copy, "DROP TABLE \(table.quoted)",
                "ALTER TABLE \(Self.temporary) RENAME TO \(table.quoted)",
            ] + others
        }
        return [
            "ALTER TABLE \(table.quoted) RENAME TO \(Self.temporary)", sql, copy, "DROP TABLE \(Self.temporary)",
        ] + others
    }
}
