import GRDB
import MartletStore

/// What a store remembers of the schema that it was made for.
struct StoredSchema: Codable, Equatable {
    struct Table: Codable, Equatable {
        var name: String
        /// Definitions by column name.
        var columns: [String: String]
        var indexes: [String: String]
        var identity: [String]
    }

    var version: Schema.Version
    var tables: [Table]

    init(_ schema: Schema, _ layout: SchemaLayout) {
        version = schema.version
        let maker = TableMaker(layout: layout)
        tables = layout.tables.map { table in
            var columns = Dictionary(uniqueKeysWithValues: table.columns.map { ($0.name, maker.definition($0)) })
            if table.hasTypeColumn { columns[TableLayout.type] = maker.typeColumn(table) }
            return Table(
                name: table.name, columns: columns,
                indexes: Dictionary(
                    maker.indexes(table).map { ($0.name, $0.sql) }, uniquingKeysWith: { first, _ in first }),
                identity: table.identity)
        }
        tables += layout.joins.map { join in
            Table(
                name: join.name, columns: ["": maker.join(join.name, join.first).joined()], indexes: [:], identity: [])
        }
        tables.sort { $0.name < $1.name }
    }

    private static let tableName = "_martlet_models"

    /// Nil where no container has used the store yet.
    static func read(_ db: Database) throws -> StoredSchema? {
        guard try db.tableExists(tableName) else { return nil }
        guard let text = try String.fetchOne(db, sql: "SELECT schema FROM \(tableName)") else { return nil }
        do {
            return try JSONDecoder().decode(StoredSchema.self, from: Data(text.utf8))
        } catch {
            throw SwiftDataError.incompatibleStore.because("What the store says of its schema can't be read.")
        }
    }

    func write(_ db: Database) throws {
        try db.execute(
            sql: "CREATE TABLE IF NOT EXISTS \(Self.tableName)(id INTEGER PRIMARY KEY, schema TEXT NOT NULL)")
        try db.execute(sql: try statement())
    }

    /// The SQL that makes a store remember this.
    func statement() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        let text = String(decoding: try encoder.encode(self), as: UTF8.self)
        return "INSERT OR REPLACE INTO \(Self.tableName) VALUES (1, \(text.quotedText));"
    }
}
