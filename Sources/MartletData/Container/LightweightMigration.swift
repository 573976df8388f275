import MartletStore

/// The SQL that brings a store from one shape to another, where that can be worked out.
struct LightweightMigration {
    let found: StoredSchema
    let wanted: StoredSchema
    let layout: SchemaLayout

    /// One script, which the store runs as one transaction with capture kept whole.
    ///
    /// - Throws: ``SwiftDataError/missingMigration`` for what needs a decision.
    func script() throws -> String {
        let maker = TableMaker(layout: layout)
        var statements: [String] = []
        for old in found.tables {
            for name in old.indexes.keys.sorted() where wantedIndex(old.name, name) != old.indexes[name] {
                statements.append("DROP INDEX IF EXISTS \(name.quotedName)")
            }
        }
        for table in layout.tables {
            guard let old = found.tables.first(where: { $0.name == table.name }) else {
                statements += maker.create(table)
                continue
            }
            guard old.identity == table.identity else {
                throw SwiftDataError.missingMigration.because(
                    "What names a \(table.name) on every node changed. That can't be migrated yet.")
            }
            statements += try changes(old, table, maker)
        }
        for join in layout.joins {
            let definition = maker.join(join.name, join.first)
            guard let old = found.tables.first(where: { $0.name == join.name }) else {
                statements += definition
                continue
            }
            guard old.columns == ["": definition.joined()] else {
                throw SwiftDataError.missingMigration.because("The relationship \(join.name) changed its ends.")
            }
        }
        for table in layout.tables {
            let old = found.tables.first { $0.name == table.name }
            for index in maker.indexes(table) where old?.indexes[index.name] != index.sql {
                statements.append(index.sql)
            }
        }
        return statements.map { $0 + ";\n" }.joined()
    }

    private func wantedIndex(_ table: String, _ name: String) -> String? {
        wanted.tables.first { $0.name == table }?.indexes[name]
    }

    /// Columns that are no longer declared stay, and what is in them.
    private func changes(_ old: StoredSchema.Table, _ table: TableLayout, _ maker: TableMaker) throws -> [String] {
        var statements: [String] = []
        let name = table.name.quotedName
        if table.hasTypeColumn && old.columns[TableLayout.type] == nil {
            statements.append("ALTER TABLE \(name) ADD COLUMN \(maker.typeColumn(table))")
        }
        for column in table.columns {
            let definition = maker.definition(column)
            if let known = old.columns[column.name] {
                guard known == definition else {
                    throw SwiftDataError.missingMigration.because(
                        "\(table.name).\(column.name) changed its type, its optionality or its default value. That can't be migrated yet."
                    )
                }
                continue
            }
            if let original = column.originalName, let known = old.columns[original] {
                let renamed = column.name.quotedName + known.dropFirst(original.quotedName.count)
                guard renamed == definition else {
                    throw SwiftDataError.missingMigration.because(
                        "\(table.name).\(column.name) was renamed and changed at once. Do the one first.")
                }
                statements.append(
                    "ALTER TABLE \(name) RENAME COLUMN \(original.quotedName) TO \(column.name.quotedName)")
                continue
            }
            guard !column.isNotNull || column.defaultValue.map({ !$0.isNull }) == true else {
                throw SwiftDataError.missingMigration.because(
                    "\(table.name).\(column.name) is new, and the models that are stored have no value for it. Give it a default value, or make it optional."
                )
            }
            statements.append("ALTER TABLE \(name) ADD COLUMN \(definition)")
        }
        return statements
    }
}
