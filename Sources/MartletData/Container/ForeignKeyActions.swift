import GRDB
import MartletStore

/// The delete actions of foreign keys, as temporary triggers.
///
/// SQLite can't enforce foreign keys during a migration: rebuilding a table would then delete its children too, and
/// SQLite doesn't allow switching enforcement inside a transaction. These triggers apply the actions to rows that the
/// app's closures delete.
struct ForeignKeyActions {
    let db: Database

    private static let prefix = "_martlet_action_"

    func install() throws {
        let inspector = TableInspector(db)
        let tables = try inspector.userTables()
        var count = 0
        for child in tables {
            let rows = try Row.fetchAll(
                db, sql: "SELECT * FROM pragma_foreign_key_list(?, 'main') ORDER BY id, seq", arguments: [child])
            for (_, key) in Dictionary(grouping: rows, by: { $0["id"] as Int }).sorted(by: { $0.key < $1.key }) {
                guard let parent = tables.first(where: { $0.lowercased() == (key[0]["table"] as String).lowercased() }),
                    let table = try inspector.table(parent), let action = action(child, key, table)
                else { continue }
                count += 1
                try db.execute(
                    sql: """
                        CREATE TEMP TRIGGER \(Self.prefix)\(count) AFTER DELETE ON main.\(parent.quotedName) BEGIN
                        \(action); END
                        """)
            }
        }
    }

    private func action(_ child: String, _ key: [Row], _ parent: TableInspector.Table) -> String? {
        let own = key.map { $0["from"] as String }
        var targets = key.compactMap { $0["to"] as String? }
        if targets.isEmpty { targets = parent.primaryKey }
        guard own.count == targets.count else { return nil }
        let isChild = zip(own, targets).map { "\($0.quotedName) = OLD.\($1.quotedName)" }.joined(separator: " AND ")
        switch key[0]["on_delete"] as String {
        case "SET NULL":
            let values = own.map { "\($0.quotedName) = NULL" }.joined(separator: ", ")
            return "UPDATE \(child.quotedName) SET \(values) WHERE \(isChild)"
        case "CASCADE": return "DELETE FROM \(child.quotedName) WHERE \(isChild)"
        // Deletes that an action would have forbidden are found at the end of the migration.
        default: return nil
        }
    }

    func remove() throws {
        let names = try String.fetchAll(
            db, sql: "SELECT name FROM sqlite_temp_schema WHERE type = 'trigger' AND substr(name, 1, ?) = ?",
            arguments: [Self.prefix.count, Self.prefix])
        for name in names { try db.execute(sql: "DROP TRIGGER temp.\(name.quotedName)") }
    }
}
