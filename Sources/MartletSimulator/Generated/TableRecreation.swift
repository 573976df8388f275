package import GRDB
import MartletStore

/// Drops a table and creates it again with the rows that it had, in one transaction or in several, like a script that
/// somebody types. What is left to do is in the file, so that it shares the fate of the file.
package struct TableRecreation {
    private static let copy = "sim_copy"
    private static let left = "sim_left"

    let db: Database
    let table: TableProfile

    package init(db: Database, table: TableProfile) {
        self.db = db
        self.table = table
    }

    /// Returns true while a table is missing, or lacks its rows.
    package static func isUnderWay(_ db: Database) throws -> Bool {
        try Bool.fetchOne(
            db, sql: "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?)", arguments: [left]) ?? false
    }

    /// The statements of the next transaction. Empty if nothing is left to do.
    package static func next(_ db: Database) throws -> [String] {
        guard try isUnderWay(db), let part = try Int.fetchOne(db, sql: "SELECT min(part) FROM \(left)"),
            let last = try Int.fetchOne(db, sql: "SELECT max(part) FROM \(left)")
        else { return [] }
        let wanted = try String.fetchAll(
            db, sql: "SELECT sql FROM \(left) WHERE part = ? ORDER BY rowid", arguments: [part])
        return wanted + [part == last ? "DROP TABLE \(left)" : "DELETE FROM \(left) WHERE part = \(part)"]
    }

    /// Returns true if nothing else would notice that the table is missing: no row refers to it, it has no user
    /// triggers, and no trigger writes to it.
    package static func isAlone(_ db: Database, _ table: TableProfile) throws -> Bool {
        let isMentioned = try Bool.fetchOne(
            db,
            sql: """
                SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type IN ('trigger', 'view') AND name NOT GLOB ?1
                AND (tbl_name = ?2 COLLATE NOCASE OR instr(lower(sql), lower(?2))))
                """, arguments: [InternalName.prefix + "*", table.name])
        return !table.isReferenced && isMentioned == false
    }

    /// The statements of the first transaction, which note those of the others.
    package func statements(_ chance: Chance) throws -> [String] {
        let made = try String.fetchAll(
            db,
            sql: """
                SELECT sql FROM sqlite_schema WHERE tbl_name = ? AND type IN ('table', 'index') AND sql IS NOT NULL
                AND name NOT GLOB ? ORDER BY type = 'table' DESC, rowid
                """, arguments: [table.name, InternalName.prefix + "*"])
        guard !made.isEmpty else { return [] }
        let names = table.columns.map(\.quoted).joined(separator: ", ")
        let leave = [
            "CREATE TABLE \(Self.copy) AS SELECT \(names) FROM \(table.quoted)", "DROP TABLE \(table.quoted)",
        ]
        // Rows that other nodes have sent meanwhile stay.
        let fill = [
            "INSERT OR IGNORE INTO \(table.quoted)(\(names)) SELECT \(names) FROM \(Self.copy)",
            "DROP TABLE \(Self.copy)",
        ]
        switch chance.below(4, "recreated in") {
        case 0: return leave + made + fill
        case 1: return leave + noting([made, fill])
        case 2: return leave + made + noting([fill])
        default: return leave + noting([made + fill])
        }
    }

    private func noting(_ parts: [[String]]) -> [String] {
        ["CREATE TABLE \(Self.left)(part INTEGER, sql TEXT)"]
            + parts.enumerated().flatMap { number, part in
                part.map { "INSERT INTO \(Self.left) VALUES (\(number), \($0.quotedText))" }
            }
    }
}
