import GRDB
import MartletCore
import MartletReplica
import MartletStore

/// The table that a topic's rows go to.
struct TargetTable {
    let table: EntityTable
    var entity: Entity { table.entity }

    /// - Throws: ``IngestError`` if there is no such table, or if it can't take rows of a source.
    init(_ mapping: TableMapping, _ context: ReplicaContext) throws(IngestError) {
        guard let table = context.table(named: mapping.table, []) else { throw Self.missing(mapping) }
        self.table = table
        if let problem = Self.problem(of: table.entity, context.filters) { throw problem }
    }

    static func missing(_ mapping: TableMapping) -> IngestError {
        IngestError(
            .table, "there is no tracked table \(mapping.table)",
            hint: "Create it and run `martlet attach`; the records of \(mapping.topic) wait.")
    }

    /// Returns why a tracked table can't take rows of a source. Nil if it can.
    static func problem(of entity: Entity, _ filters: RowFilters) -> IngestError? {
        let name = entity.name
        guard case .columns = entity.identity else {
            return IngestError(
                .table, "Martlet assigns the IDs of \(name), and the source knows nothing of them",
                hint: "Attach the table with `--identity \(name)=COLUMN`, naming the columns of the source's key.")
        }
        if let column = entity.columns.first(where: { $0.reference != nil && !$0.isDropped }),
            let target = column.reference
        {
            return IngestError(
                .table, "\(name).\(column.name) refers to rows of \(target), which each node numbers by itself",
                hint: "Attach \(target) with `--identity \(target)=COLUMN`, naming its integer key.")
        }
        if filters[entity]?.isIgnored ?? false {
            return IngestError(
                .table, "a filter ignores \(name)", hint: "Remove it from filters.ignore, or from ingest.topics.")
        }
        if filters[entity]?.publish != nil {
            return IngestError(
                .table, "a filter decides which rows of \(name) this node publishes, and ingest publishes all of them",
                hint: "Remove \(name) from filters.publish, or from ingest.topics.")
        }
        return nil
    }

    /// What a decoder has to know of a table's columns.
    struct Columns: Equatable {
        /// The declared types, by name and former name.
        var types: [String: String] = [:]
        /// Those that the table computes by itself: generated columns, and an integer key that each node assigns.
        var computed: Set<String> = []

        /// Those of no table, if there is no such table.
        init(_ db: Database, _ mapping: TableMapping, _ catalog: Catalog) throws {
            guard let entity = catalog.entity(mapping.table, []) else { return }
            let former = entity.columns.flatMap { column in column.formerNames.map { ($0, column.declaredType) } }
            types = Dictionary(
                entity.columns.map { ($0.name, $0.declaredType) } + former, uniquingKeysWith: { first, _ in first })
            let columns = try TableInspector(db).table(entity.name)?.columns ?? []
            computed = Set(columns.filter(\.isGenerated).map(\.name) + [entity.localKey].compactMap(\.self))
        }
    }

    /// Values of a record by what the table knows of their columns.
    struct Values {
        /// As the columns store them, by slot.
        var known: [Int: Value] = [:]
        /// Of columns that the table lacks, by name.
        var unknown: [String: Value] = [:]
    }

    /// Values of columns that stay on this node are left out.
    ///
    /// - Throws: ``IngestError`` if two of them belong to one column.
    func values(_ record: [String: Value]) throws(IngestError) -> Values {
        var values = Values()
        for (name, value) in record {
            guard let column = table.column(named: name) else {
                values.unknown[name] = value
                continue
            }
            if column.isLocal { continue }
            guard values.known.updateValue(value, forKey: column.slot) == nil else {
                throw IngestError(
                    .columns, "two columns of the record belong to \(entity.name).\(column.name)",
                    hint: "Leave one of them out with the mapping of columns in ingest.topics.")
            }
        }
        return values
    }

    /// Returns the values that identify the row of a record, in the order of the identity's columns.
    ///
    /// - Throws: ``IngestError`` if the record's key has other columns than the identity, or no value for one.
    func identity(_ key: [String: Value]) throws(IngestError) -> [Value] {
        let values = try self.values(key)
        let columns = table.identityColumns
        guard values.unknown.isEmpty, Set(values.known.keys) == Set(columns.map(\.slot)) else {
            let names = columns.map(\.name).joined(separator: ", ")
            throw IngestError(
                .columns,
                "the key of the record has the columns \(key.keys.sorted().joined(separator: ", ")), and rows of "
                    + "\(entity.name) are identified by \(names)",
                hint: "Map the columns of the key in ingest.topics, set message.key.columns in the connector, or "
                    + "attach the table with another identity.")
        }
        let identity = columns.map { values.known[$0.slot] ?? .null }
        guard !identity.contains(where: \.isNull) else {
            throw IngestError(
                .columns, "the key of the record has a NULL", hint: "Key the topic by columns that are never NULL.")
        }
        return identity
    }
}
