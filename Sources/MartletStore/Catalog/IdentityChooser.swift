/// Chooses the identity rule of a table, or throws an error that tells why it can't have one.
struct IdentityChooser {
    let table: TableInspector.Table
    /// The columns that the user named, if any.
    let declared: [String]?

    func choose() throws -> IdentityRule {
        if let declared, !declared.isEmpty { return .columns(try checkDeclared(declared)) }
        let key = table.primaryKey
        if key.isEmpty {
            throw StoreError(
                .notTrackable, "Table \(table.name) has no primary key, so SQLite may renumber its rows.",
                hint: """
                    Give it an INTEGER PRIMARY KEY column, or name columns with a unique index: --identity \
                    \(table.name)=column.
                    """)
        }
        guard let integerKey = table.integerKey else { return .columns(key) }
        // If the key is itself a foreign key (of a table that extends another one), its target identifies the row.
        return table.foreignKeys.contains { $0.columns == [integerKey] } ? .columns(key) : .hidden
    }

    private func checkDeclared(_ names: [String]) throws -> [String] {
        let columns = try names.map { name in
            guard let column = table.columns.first(where: { $0.name.lowercased() == name.lowercased() }) else {
                throw StoreError(
                    .invalidArgument, "Table \(table.name) has no column \(name).",
                    hint: "Use one of \(table.columns.map(\.name).joined(separator: ", ")).")
            }
            return column
        }
        if let generated = columns.first(where: \.isGenerated) {
            throw StoreError(
                .notTrackable, "Column \(generated.name) of table \(table.name) is generated; it can't be an identity."
            )
        }
        guard table.isUnique(columns.map(\.name)) else {
            let list = columns.map(\.name.quotedName).joined(separator: ", ")
            throw StoreError(
                .notTrackable, "The columns \(list) of table \(table.name) are not unique.",
                hint: """
                    Run: CREATE UNIQUE INDEX \((table.name + "_identity").quotedName) ON \
                    \(table.name.quotedName)(\(list))
                    """)
        }
        return columns.map(\.name)
    }
}
