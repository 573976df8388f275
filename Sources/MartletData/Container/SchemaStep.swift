import GRDB
import MartletStore

/// Migrates the tables of a store from one version to the next, in the transaction of a migration.
///
/// Values that are computed here (a default value for a new attribute, a number converted to another kind of number)
/// are not changes in the history: every node computes them for itself, and they must overrule nobody.
struct SchemaStep {
    let alteration: Alteration
    let difference: SchemaDifference
    /// True in a custom stage, whose closures can make the values fit.
    let isCustom: Bool
    let progress: (_ entity: String, _ done: Int, _ total: Int) -> Void

    private var db: Database { alteration.database }
    private var maker: TableMaker { TableMaker(layout: difference.layout) }

    func run() throws {
        for table in difference.tables {
            for change in table.changed { try ColumnChange(change, of: table.table, isCustom: isCustom).check() }
        }
        try dropIndexes()
        for table in difference.tables { try rename(table) }
        try renameJoins()
        try alteration.follow()
        for table in difference.newTables { try db.execute(sql: maker.create(table)) }
        for join in difference.newJoins { for sql in maker.join(join.name, join.first) { try db.execute(sql: sql) } }
        for table in difference.tables { try addColumns(table) }
        try alteration.follow()
        try alteration.withoutCapture {
            Set(try difference.tables.filter(rebuild).map(\.table.name))
        }
        for table in difference.tables { try checkValues(table) }
        try makeIndexes()
        try TableTracker(alteration, difference.layout).track()
        try RelationshipMoves(alteration: alteration, difference: difference).run()
        try difference.result.write(db)
    }

    // MARK: Names

    private func rename(_ table: TableDifference) throws {
        var waiting = table.renamed
        while !waiting.isEmpty {
            let columns = Set(
                try String.fetchAll(
                    db, sql: "SELECT lower(name) FROM pragma_table_xinfo(?, 'main')", arguments: [table.table.name]))
            let free = waiting.firstIndex {
                !columns.contains($0.to.lowercased()) || $0.from.lowercased() == $0.to.lowercased()
            }
            guard let free else {
                throw SwiftDataError.missingMigration.because(
                    """
                    \(table.table.name).\(waiting[0].from) can't be renamed to \(waiting[0].to): a column of that name \
                    exists, from an earlier version or another program. Choose another name, or drop that column with \
                    `martlet alter`.
                    """
                )
            }
            let (from, to) = waiting.remove(at: free)
            try db.execute(
                sql:
                    "ALTER TABLE \(table.table.name.quotedName) RENAME COLUMN \(from.quotedName) TO \(to.quotedName)")
        }
    }

    private func renameJoins() throws {
        for (old, new) in difference.renamedJoins {
            if old.name != new.name {
                try db.execute(sql: "ALTER TABLE \(old.name.quotedName) RENAME TO \(new.name.quotedName)")
            }
            for (from, to) in SchemaDifference.renamedColumns(old, new) {
                try db.execute(
                    sql: "ALTER TABLE \(new.name.quotedName) RENAME COLUMN \(from.quotedName) TO \(to.quotedName)")
            }
        }
    }

    // MARK: Columns

    private func addColumns(_ difference: TableDifference) throws {
        let table = difference.table
        let columns = Set(
            try String.fetchAll(
                db, sql: "SELECT lower(name) FROM pragma_table_xinfo(?, 'main')", arguments: [table.name]))
        func add(_ name: String, _ definition: String) throws {
            guard !columns.contains(name.lowercased()) else {
                throw SwiftDataError.missingMigration.because(
                    """
                    \(table.name).\(name) is new, but another program has created a column of that name. Choose \
                    another name, or drop that column with `martlet alter`.
                    """
                )
            }
            try db.execute(sql: "ALTER TABLE \(table.name.quotedName) ADD COLUMN \(definition)")
        }
        // A table that had subclasses before still has the column.
        if table.hasTypeColumn, !columns.contains(TableLayout.type) {
            try add(TableLayout.type, maker.typeColumn(table.name))
        }
        for column in difference.added {
            guard !column.isNotNull || column.defaultValue.map({ !$0.isNull }) == true else {
                throw SwiftDataError.missingMigration.because(
                    """
                    \(column.owner).\(column.property) is new, but the stored models have no value for it. Give it a \
                    default value where it is declared, or make it optional.
                    """
                )
            }
            try add(column.name, maker.definition(column))
        }
    }

    /// - Returns: true if there was anything to do.
    private func rebuild(_ difference: TableDifference) throws -> Bool {
        let table = difference.table
        var rebuild = TableRebuild(db: db, table: table.name)
        for change in difference.changed where change.isRetyped || change.isFilled || change.isLoosened {
            let column = ColumnChange(change, of: table, isCustom: isCustom)
            try column.checkValues(db)
            rebuild.definitions[change.column.name] = maker.definition(change.column)
            rebuild.values[change.column.name] = column.value
        }
        for (name, column) in difference.retired where column.isNotNull {
            // New models have no value for it.
            guard try !hasDefault(table.name, name) else { continue }
            rebuild.definitions[name] = maker.retired(name, column)
        }
        guard !rebuild.definitions.isEmpty else { return false }
        try rebuild.run { progress(table.name, $0, $1) }
        return true
    }

    private func hasDefault(_ table: String, _ column: String) throws -> Bool {
        try Bool.fetchOne(
            db,
            sql: "SELECT dflt_value IS NOT NULL OR \"notnull\" = 0 FROM pragma_table_xinfo(?, 'main') WHERE name = ?",
            arguments: [table, column]) ?? true
    }

    /// An attribute's new type may be stored in the same way as the old one, but not accept every stored value.
    private func checkValues(_ difference: TableDifference) throws {
        for change in difference.changed where change.isRead || change.isRetyped {
            guard let accepts = change.column.accepts else { continue }
            let name = change.column.name.quotedName
            let read = try PreparedStatement(
                db, "SELECT \(name) FROM \(difference.table.name.quotedName) WHERE \(name) IS NOT NULL")
            defer { read.reset() }
            var count = 0
            while try read.step() { if !accepts(read.value(0)) { count += 1 } }
            guard count == 0 else {
                throw ColumnChange(change, of: difference.table, isCustom: isCustom).doesNotFit(count)
            }
        }
    }

    // MARK: Indexes

    private func wantedIndex(_ table: String, _ name: String) -> String? {
        difference.wanted.tables.first { $0.name == table }?.indexes[name]
    }

    private func dropIndexes() throws {
        for old in difference.found.tables + difference.found.leftOut
        where difference.wanted.tables.contains(where: { $0.name == old.name }) {
            for (name, sql) in old.indexes.sorted(by: { $0.key < $1.key }) where wantedIndex(old.name, name) != sql {
                try db.execute(sql: "DROP INDEX IF EXISTS \(name.quotedName)")
            }
        }
    }

    private func makeIndexes() throws {
        for table in difference.layout.tables {
            let old = difference.old(table)
            for key in table.uniqueKeys { try checkUnique(table, key) }
            for index in maker.indexes(table) where old?.indexes[index.name] != index.sql {
                try db.execute(sql: index.sql)
            }
        }
    }

    private func checkUnique(_ table: TableLayout, _ key: [String]) throws {
        let index = maker.indexes(table).first { $0.name == maker.uniqueName(table, key) }
        guard let index, let old = difference.old(table), old.indexes[index.name] != index.sql else { return }
        let columns = key.map(\.quotedName).joined(separator: ", ")
        let row = try Row.fetchOne(
            db,
            sql: """
                SELECT count(*), sum(n) FROM (SELECT count(*) AS n FROM \(table.name.quotedName)
                WHERE \(key.map { "\($0.quotedName) IS NOT NULL" }.joined(separator: " AND "))
                GROUP BY \(columns) HAVING count(*) > 1)
                """)
        guard let row, let count = row[0] as Int?, count > 0, let rows = row[1] as Int? else { return }
        let attributes = key.count == 1 ? key[0] : "(\(key.joined(separator: ", ")))"
        throw SwiftDataError.missingMigration.because(
            """
            \(table.name).\(attributes) is to be unique, but \(rows) models share \(count) \
            value\(count == 1 ? "" : "s"). Delete or change duplicates in willMigrate of a custom stage, and save.
            """
        )
    }
}
