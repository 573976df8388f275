import GRDB
import MartletStore

/// Writes the SQL that makes tables of a schema.
struct TableMaker {
    let layout: SchemaLayout

    func create(_ table: TableLayout) -> [String] {
        var columns = ["\(TableLayout.key) INTEGER PRIMARY KEY AUTOINCREMENT"]
        if table.hasTypeColumn { columns.append(typeColumn(table)) }
        columns += table.columns.map(definition)
        return ["CREATE TABLE \(table.name.quotedName)(\(columns.joined(separator: ", ")))"]
    }

    func typeColumn(_ table: TableLayout) -> String {
        "\(TableLayout.type) TEXT NOT NULL DEFAULT \(table.name.quotedText)"
    }

    func definition(_ column: TableLayout.Column) -> String {
        var text = "\(column.name.quotedName) \(column.declaration)"
        if let target = column.reference {
            text +=
                " REFERENCES \(target.quotedName)(\(TableLayout.key)) ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED"
        }
        if column.isNotNull { text += " NOT NULL" }
        if let value = column.defaultValue, !value.isNull { text += " DEFAULT \(Self.literal(value))" }
        return text
    }

    /// A column that models of this version don't know, with what an earlier one kept in it.
    func retired(_ name: String, _ column: StoredSchema.Column) -> String {
        definition(TableLayout.Column(name: name, declaration: column.type, reference: column.reference))
    }

    func uniqueName(_ table: TableLayout, _ key: [String]) -> String {
        "\(table.name)_\(key.joined(separator: "_"))_unique"
    }

    /// Unique keys and indexes, by name.
    func indexes(_ table: TableLayout) -> [(name: String, sql: String)] {
        func index(_ kind: String, _ columns: [String], _ suffix: String) -> (name: String, sql: String) {
            let name = "\(table.name)_\(columns.joined(separator: "_"))_\(suffix)"
            let list = columns.map(\.quotedName).joined(separator: ", ")
            return (name, "CREATE \(kind) \(name.quotedName) ON \(table.name.quotedName)(\(list))")
        }
        return table.uniqueKeys.map { index("UNIQUE INDEX", $0, "unique") }
            + table.indexes.filter { !table.uniqueKeys.contains($0) }.map { index("INDEX", $0, "index") }
    }

    func join(_ name: String, _ first: Link) -> [String] {
        guard case .join(_, let own, let other) = first.storage else { return [] }
        func column(_ column: String, _ entity: EntityLayout) -> String {
            "\(column.quotedName) INTEGER NOT NULL REFERENCES \(entity.table.name.quotedName)(\(TableLayout.key)) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED"
        }
        let key = "PRIMARY KEY (\(own.quotedName), \(other.quotedName))"
        return [
            "CREATE TABLE \(name.quotedName)(\(column(own, first.source)), \(column(other, first.destination)), \(key))",
            "CREATE INDEX \((name + "_reverse").quotedName) ON \(name.quotedName)(\(other.quotedName))",
        ]
    }

    static func literal(_ value: Value) -> String {
        switch value {
        case .integer(let value): "\(value)"
        case .real(let value) where value.isNaN: "NULL"
        case .real(let value): value.isFinite ? "\(value)" : (value > 0 ? "9e999" : "-9e999")
        case .text(let text): text.quotedText
        case .blob(let bytes):
            "x'" + bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() + "'"
        case .null, .rawText, .reference: "NULL"
        }
    }
}
