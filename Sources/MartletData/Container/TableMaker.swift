import GRDB
import MartletStore

/// Generates the SQL that creates the tables of a schema.
struct TableMaker {
    let layout: SchemaLayout

    /// - Parameter retired: columns of earlier versions, by name.
    func create(_ table: TableLayout, retired: [String: StoredSchema.Column] = [:]) -> String {
        var columns = table.hasTypeColumn ? [typeColumn(table.name)] : []
        columns += table.columns.map(definition) + self.retired(retired)
        return create(table.name, columns)
    }

    private func create(_ name: String, _ columns: [String]) -> String {
        let all = ["\(TableLayout.key) INTEGER PRIMARY KEY AUTOINCREMENT"] + columns
        return "CREATE TABLE \(name.quotedName)(\(all.joined(separator: ", ")))"
    }

    private func retired(_ columns: [String: StoredSchema.Column]) -> [String] {
        columns.sorted { $0.key < $1.key }.map(retired)
    }

    /// Creates a table that only models of earlier versions use.
    func leftOut(_ table: StoredSchema.Table) -> [String] {
        var columns = table.hasType ? [typeColumn(table.name)] : []
        columns += retired(table.columns.merging(table.retired) { current, _ in current })
        return [create(table.name, columns)] + table.indexes.sorted { $0.key < $1.key }.map(\.value)
    }

    func typeColumn(_ table: String) -> String {
        "\(TableLayout.type) TEXT NOT NULL DEFAULT \(table.quotedText)"
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

    /// The definition of a column that models of this version don't have, with the type that an earlier one gave it.
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
        return join(
            StoredSchema.Join(
                name: name, own: own, ownTable: first.source.table.name, other: other,
                otherTable: first.destination.table.name))
    }

    func join(_ join: StoredSchema.Join) -> [String] {
        func column(_ column: String, _ table: String) -> String {
            """
            \(column.quotedName) INTEGER NOT NULL REFERENCES \(table.quotedName)(\(TableLayout.key)) ON DELETE \
            CASCADE DEFERRABLE INITIALLY DEFERRED
            """
        }
        let columns = [
            column(join.own, join.ownTable), column(join.other, join.otherTable),
            "PRIMARY KEY (\(join.own.quotedName), \(join.other.quotedName))",
        ]
        return [
            "CREATE TABLE \(join.name.quotedName)(\(columns.joined(separator: ", ")))",
            "CREATE INDEX \((join.name + "_reverse").quotedName) ON \(join.name.quotedName)(\(join.other.quotedName))",
        ]
    }

    static func literal(_ value: Value) -> String {
        switch value {
        case .integer(let value): "\(value)"
        case .real(let value) where value.isNaN: "NULL"
        case .real(let value): value.isFinite ? "\(value)" : (value > 0 ? "9e999" : "-9e999")
        case .text(let text): text.quotedText
        case .blob(let bytes):
            "x'\(Hex.text(bytes))'"
        case .null, .rawText, .reference: "NULL"
        }
    }
}
