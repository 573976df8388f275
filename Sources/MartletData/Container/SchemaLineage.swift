/// What the earlier versions of a plan leave in a store that is migrated from them: former names, and columns and
/// tables that are no longer declared.
///
/// A store that is created with a later version gets the same. This is how it understands devices that still have an
/// earlier version.
struct SchemaLineage {
    /// The schema that a store is created for, with the columns and tables of earlier versions.
    private(set) var stored: StoredSchema
    /// Former column names by table and column, the newest first.
    private(set) var formerColumnNames: [String: [String: [String]]] = [:]
    /// Former names of the tables of many-to-many relationships, the newest first.
    private(set) var formerTableNames: [String: [String]] = [:]

    /// - Throws: ``SwiftDataError/invalidSchema`` for a version that contradicts itself.
    init(of wanted: StoredSchema, _ layout: SchemaLayout, _ path: MigrationPath?) throws {
        stored = wanted
        var versions: [(StoredSchema, SchemaLayout)] = []
        for version in path?.plan.schemas ?? [] where version.versionIdentifier < wanted.version {
            guard let schema = try path?.schema(version), !schema.models.isEmpty else { continue }
            let layout = try SchemaLayout(schema)
            versions.append((StoredSchema(schema, layout), layout))
        }
        versions.append((wanted, layout))
        for (index, version) in versions.enumerated() { step(to: version.0, version.1, isFirst: index == 0) }
    }

    private mutating func step(to next: StoredSchema, _ layout: SchemaLayout, isFirst: Bool) {
        // If there is no migration from one version to the next, no device has migrated that way.
        if !isFirst, let difference = try? SchemaDifference(from: stored, to: next, layout) {
            for table in difference.tables { rename(table.table.name, table.renamed) }
            for (old, new) in difference.renamedJoins {
                if old.name != new.name {
                    formerTableNames[new.name] = [old.name] + (formerTableNames.removeValue(forKey: old.name) ?? [])
                    formerColumnNames[new.name] = formerColumnNames.removeValue(forKey: old.name)
                }
                rename(new.name, SchemaDifference.renamedColumns(old, new))
            }
            stored = difference.result
        } else {
            stored = next
            formerColumnNames = [:]
            formerTableNames = [:]
        }
        for table in layout.tables {
            for column in table.columns {
                guard let name = column.originalName else { continue }
                var known = formerColumnNames[table.name, default: [:]][column.name] ?? []
                guard name != column.name, !known.contains(name) else { continue }
                known.append(name)
                formerColumnNames[table.name, default: [:]][column.name] = known
            }
        }
        // A name that is in use refers to the column that has it now.
        for table in stored.tables {
            let used = Set(table.columns.keys).union(table.retired.keys)
            formerColumnNames[table.name] = formerColumnNames[table.name]?.mapValues { names in
                names.filter { !used.contains($0) }
            }
        }
    }

    private mutating func rename(_ table: String, _ renamed: [(from: String, to: String)]) {
        let before = formerColumnNames[table] ?? [:]
        var after = before.filter { name, _ in !renamed.contains { $0.from == name } }
        for (from, to) in renamed where from != to { after[to] = [from] + (before[from] ?? []) }
        formerColumnNames[table] = after
    }
}
