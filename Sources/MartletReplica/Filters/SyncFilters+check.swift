package import GRDB
import MartletCore
package import MartletStore

extension SyncFilters {
    /// Returns the local columns of the table, by slot.
    package func localSlots(_ entity: Entity) -> Set<Int> {
        let names = ([entity.name] + entity.formerNames).map { $0.lowercased() }
        let columns = localColumns.filter { names.contains($0.key.lowercased()) }.flatMap(\.value)
        return Set(columns.flatMap { entity.columns(everNamed: $0) }.map(\.slot))
    }

    /// Checks whether the filters are valid for these tables. Everything that a filter names must exist: a misspelled
    /// name would publish what should not be. Ignored tables need not exist.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument`.
    package func check(_ db: Database, _ catalog: Catalog) throws {
        func entity(_ name: String, _ key: String) throws -> Entity {
            if let entity = catalog.entity(named: name) { return entity }
            let known = catalog.entities.map(\.name).sorted().joined(separator: ", ")
            throw StoreError(
                .invalidArgument, "filters.\(key) names the table \(name), which is not tracked here.",
                hint: "Tracked tables: \(known.isEmpty ? "none" : known). Track a table with `martlet attach`.")
        }
        for (name, columns) in localColumns.sorted(by: { $0.key < $1.key }) {
            let entity = try entity(name, "localColumns")
            let table = try TableInspector(db).table(entity.name)
            for column in columns.sorted() {
                let found = entity.columns.first { $0.name.lowercased() == column.lowercased() }
                guard let found else {
                    throw StoreError(
                        .invalidArgument,
                        "filters.localColumns names \(name).\(column), which is not a captured column.",
                        hint: "Columns of \(entity.name): \(entity.columns.map(\.name).joined(separator: ", ")).")
                }
                let isKey =
                    entity.identityColumns.contains(found)
                    || entity.uniqueKeys.contains { $0.sources.contains(found.name.lowercased()) }
                guard !isKey else {
                    throw StoreError(
                        .invalidArgument, "filters.localColumns names \(name).\(column), which is part of a key.",
                        hint: "Remove it: the key identifies rows on all nodes, so it can't stay on one of them.")
                }
                let hasDefault = table?.columns.first { $0.name == found.name }?.defaultSQL != nil
                guard !found.isNotNull || hasDefault else {
                    throw StoreError(
                        .invalidArgument,
                        "filters.localColumns names \(name).\(column), which is NOT NULL and has no default.",
                        hint: "Rows of other nodes arrive without it. Give it a default with `martlet alter`.")
                }
            }
        }
        for (name, sql) in publish { _ = try RowCondition(sql, try entity(name, "publish"), defaults: [:]) }
        for (name, sql) in subscribe { _ = try RowCondition(sql, try entity(name, "subscribe"), defaults: [:]) }
    }
}
