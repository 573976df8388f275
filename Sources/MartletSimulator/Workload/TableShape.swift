import GRDB
import MartletStore

/// The properties of a table that matter for writing to it at random.
struct TableShape: Sendable {
    struct Column: Sendable {
        var name: String
        var type: String
        var isNotNull: Bool
        /// True if the column is part of a unique key or the primary key: it then gets few values, so that they
        /// collide.
        var isUnique: Bool
        var isKey: Bool
        /// The table and column that it references.
        var reference: (table: String, column: String)?
    }

    var name: String
    var columns: [Column]
    /// The column that SQLite numbers by itself.
    var integerKey: String?
    var key: [String]
    var isReferenced = false

    /// All of the user's tables, without the simulation's own.
    static func all(_ db: Database) throws -> [TableShape] {
        let inspector = TableInspector(db)
        let tables = try inspector.userTables().filter { !$0.hasPrefix("sim_") }.compactMap { try inspector.table($0) }
        let keys = Dictionary(tables.map { ($0.name.lowercased(), $0.primaryKey) }, uniquingKeysWith: { a, _ in a })
        var shapes = tables.map { table in
            let unique = Set(table.uniqueKeys.flatMap(\.columns)).union(table.primaryKey)
            return TableShape(
                name: table.name,
                columns: table.columns.filter { !$0.isGenerated }.map { column in
                    let foreign = table.foreignKeys.first { $0.columns == [column.name] }
                    let target = foreign.map { key in
                        (key.target, key.targetColumns.first ?? keys[key.target.lowercased()]?.first ?? "rowid")
                    }
                    return Column(
                        name: column.name, type: column.type.uppercased(), isNotNull: column.isNotNull,
                        isUnique: unique.contains(column.name), isKey: column.keyPosition > 0, reference: target)
                }, integerKey: table.integerKey, key: table.primaryKey)
        }
        let targets = Set(tables.flatMap { $0.foreignKeys.map { $0.target.lowercased() } })
        for index in shapes.indices { shapes[index].isReferenced = targets.contains(shapes[index].name.lowercased()) }
        return shapes
    }
}
