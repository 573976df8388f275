import MartletStore

/// The changes to the columns of one table from one version to the next.
struct TableDifference {
    struct Change {
        var column: TableLayout.Column
        /// The old column, under its new name.
        var old: StoredSchema.Column

        var isRetyped: Bool { column.declaration != old.type || column.reference != old.reference }
        var isFilled: Bool { column.isNotNull && !old.isNotNull }
        var isLoosened: Bool { !column.isNotNull && old.isNotNull }
        var isRead: Bool { column.accepts != nil && column.valueType != old.valueType }
    }

    let table: TableLayout
    let old: StoredSchema.Table
    /// Renamed columns, from the old name to the new one.
    private(set) var renamed: [(from: String, to: String)] = []
    private(set) var added: [TableLayout.Column] = []
    private(set) var changed: [Change] = []
    /// Columns that are no longer declared, with their last known description.
    private(set) var retired: [String: StoredSchema.Column] = [:]

    private var known: [String: StoredSchema.Column] { old.columns.merging(old.retired) { current, _ in current } }

    init(_ table: TableLayout, _ old: StoredSchema.Table) throws {
        self.table = table
        self.old = old
        let sources = try matches()
        for column in table.columns {
            guard let source = sources[column.name], let before = known[source] else {
                added.append(column)
                continue
            }
            if source != column.name { renamed.append((source, column.name)) }
            let change = Change(column: column, old: before)
            if change.isRetyped || change.isFilled || change.isLoosened || change.isRead { changed.append(change) }
        }
        retired = known.filter { name, _ in !sources.values.contains(name) }
    }

    /// The old column for each new one that has one.
    private func matches() throws -> [String: String] {
        var sources: [String: String] = [:]
        func isFree(_ name: String) -> Bool { !sources.values.contains(name) }
        try checkSwaps()
        // The same property of the same model, whatever its column was called.
        for column in table.columns {
            let same = old.columns.first { $0.value.owner == column.owner && $0.value.property == column.property }
            if let name = same?.key { sources[column.name] = name }
        }
        // A property that moved to another class of the hierarchy, or that comes back.
        for column in table.columns where sources[column.name] == nil {
            if known[column.name] != nil, isFree(column.name),
                old.columns[column.name] != nil || column.originalName == nil
            {
                sources[column.name] = column.name
            }
        }
        for column in table.columns where sources[column.name] == nil {
            guard let original = column.originalName else { continue }
            let named = old.columns.first {
                $0.value.owner == column.owner && $0.value.property == original && isFree($0.key)
            }
            if let name = named?.key {
                sources[column.name] = name
            } else if known[original] != nil, isFree(original) {
                sources[column.name] = original
            } else if known[column.name] != nil, isFree(column.name) {
                sources[column.name] = column.name
            }
        }
        return sources
    }

    private func checkSwaps() throws {
        for column in table.columns {
            guard let original = column.originalName, old.columns[column.name] != nil,
                let other = table.columns.first(where: { $0.name == original }), other.originalName == column.name,
                other.name != column.name
            else { continue }
            throw SwiftDataError.missingMigration.because(
                """
                \(table.name).\(column.name) and \(other.name) swap names. Do it in two versions, through a third \
                name.
                """
            )
        }
        // Names that move on: a column takes the name of another, which has a new name itself. In the messages of
        // nodes with the earlier version, the name still means the other one.
        for column in table.columns {
            guard let original = column.originalName, original != column.name, old.columns[original] != nil,
                old.columns[column.name] != nil, !table.columns.contains(where: { $0.name == original }),
                let other = table.columns.first(where: { $0.originalName == column.name && $0.name != column.name }),
                old.columns[other.name] == nil
            else { continue }
            throw SwiftDataError.missingMigration.because(
                """
                \(table.name).\(original) takes the name \(column.name) of an attribute that becomes \(other.name). Do \
                it in two versions, through a third name.
                """
            )
        }
    }
}

/// The differences between the tables of a store and those that a schema needs.
struct SchemaDifference {
    let found: StoredSchema
    let wanted: StoredSchema
    let layout: SchemaLayout
    private(set) var newTables: [TableLayout] = []
    private(set) var tables: [TableDifference] = []
    private(set) var newJoins: [(name: String, first: Link, second: Link)] = []
    /// Renamed tables of many-to-many relationships.
    private(set) var renamedJoins: [(from: StoredSchema.Join, to: StoredSchema.Join)] = []

    /// - Throws: ``SwiftDataError/missingMigration`` for changes that need a decision.
    init(from found: StoredSchema, to wanted: StoredSchema, _ layout: SchemaLayout) throws {
        self.found = found
        self.wanted = wanted
        self.layout = layout
        let known = found.tables + found.leftOut
        guard found.tables.contains(where: { old in wanted.tables.contains { $0.name == old.name } }) else {
            throw SwiftDataError.incompatibleStore.because(
                """
                The store has none of the container's models, but \(found.tables.map(\.name).joined(separator: ", ")). \
                Open the right file, or add those models.
                """
            )
        }
        for table in layout.tables {
            guard let old = known.first(where: { $0.name == table.name }) else {
                newTables.append(table)
                continue
            }
            tables.append(try TableDifference(table, old))
        }
        for table in wanted.tables {
            for entity in table.entities {
                guard let before = known.first(where: { $0.name != table.name && $0.entities.contains(entity) }),
                    !wanted.tables.contains(where: { $0.name == before.name && $0.entities.contains(entity) })
                else { continue }
                throw SwiftDataError.missingMigration.because(
                    """
                    \(entity) was stored in the table \(before.name), and would now be in \(table.name). A model can't \
                    enter or leave a hierarchy with its rows: rename the new class, and copy the models in didMigrate.
                    """
                )
            }
        }
        for join in layout.joins {
            guard let new = wanted.joins.first(where: { $0.name == join.name }) else { continue }
            let names =
                [join.name]
                + [join.first, join.second].compactMap { link in
                    link.options.formerName.map { "\(link.source.name)_\($0)" }
                }
            let old = names.lazy.compactMap { name in
                (found.joins + found.leftOutJoins).first { $0.name == name }
            }.first
            guard let old else {
                newJoins.append(join)
                continue
            }
            guard Set([old.ownTable, old.otherTable]) == Set([new.ownTable, new.otherTable]) else {
                throw SwiftDataError.missingMigration.because(
                    """
                    The relationship \(join.first.source.name).\(join.first.name) now refers to another model. Rename \
                    the new relationship, and fill it in didMigrate.
                    """
                )
            }
            if old.name != new.name || Set([old.own, old.other]) != Set([new.own, new.other]) {
                renamedJoins.append((old, new))
            }
        }
    }

    /// The renamed columns of a join table whose relationship was renamed, or is declared from its other end.
    static func renamedColumns(
        _ old: StoredSchema.Join, _ new: StoredSchema.Join
    ) -> [(from: String, to: String)] {
        let columns =
            old.ownTable == new.ownTable
            ? [(old.own, new.own), (old.other, new.other)]
            : [(old.own, new.other), (old.other, new.own)]
        return columns.filter { $0.0 != $0.1 }
    }

    func old(_ table: TableLayout) -> StoredSchema.Table? { tables.first { $0.table === table }?.old }

    /// The schema that the store records afterwards.
    var result: StoredSchema {
        var result = wanted
        for index in result.tables.indices {
            let name = result.tables[index].name
            let retired = tables.first { $0.table.name == name }?.retired ?? [:]
            // Rows of later versions may have no value in it.
            result.tables[index].retired = retired.mapValues { column in
                var column = column
                column.isNotNull = false
                return column
            }
        }
        let names = Set(wanted.tables.map(\.name))
        result.leftOut = (found.tables + found.leftOut).filter { !names.contains($0.name) }
        let joins = Set(wanted.joins.map(\.name) + renamedJoins.map(\.from.name))
        result.leftOutJoins = (found.joins + found.leftOutJoins).filter { !joins.contains($0.name) }
        return result
    }
}
