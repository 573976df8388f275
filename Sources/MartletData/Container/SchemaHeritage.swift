/// What the earlier versions of a plan leave in a store that is migrated from them: former names, and what is no longer
/// declared.
///
/// A store that begins with a later version gets the same. So it understands devices that still have an earlier one.
struct SchemaHeritage {
    /// The schema that a store is made for, with the columns and tables of earlier versions.
    private(set) var stored: StoredSchema
    /// By table and column, the newest first.
    private(set) var formerColumnNames: [String: [String: [String]]] = [:]
    /// Of the tables of many-to-many relationships, the newest first.
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
        // Where no way leads from one version to the next, no device has come that way.
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
        // A name that is in use means what has it.
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
