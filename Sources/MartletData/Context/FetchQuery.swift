import MartletStore

/// The SQL of a fetch.
struct FetchQuery<T: PersistentModel> {
    let entity: EntityLayout
    private let condition: SQLText
    private let joins: SQLText
    private let order: String
    private let limit: SQLText
    private let partial: PartialFetch

    init(
        _ descriptor: FetchDescriptor<T>, _ layout: SchemaLayout,
        row: @escaping (PersistentIdentifier, EntityLayout?) -> Int64?
    ) throws {
        entity = try layout.entity(T.self)
        partial = try PartialFetch(descriptor, entity)
        let translator = PredicateTranslator(layout, row: row)
        let scope = QueryScope(translator.counter)
        let alias = translator.counter.next()
        let model = ModelTerm(
            row: SQLText("\(alias).\(TableLayout.key)"), layout: entity, scope: scope, knownAlias: alias)
        var conditions: [SQLText] = []
        if entity.superlayout != nil { conditions.append(model.isKind(of: entity)) }
        if let predicate = descriptor.predicate { conditions.append(try translator.condition(predicate, on: model)) }
        condition = .joined(conditions, " AND ")
        var order: [String] = []
        for sort in descriptor.sortBy {
            guard let keyPath = sort.keyPath, let (column, type) = try Self.column(keyPath, of: model, translator)
            else {
                throw SwiftDataError.unsupportedSortDescriptor.because(
                    """
                    Sort by an attribute of \(entity.name), by a stored property of one that is Codable, or by an \
                    attribute of a model that a to-one relationship refers to.
                    """
                )
            }
            let collation =
                type?.isDecimal == true
                ? TextFunctions.decimalOrder
                : sort.stringComparator.map { $0 == .lexical ? "" : " COLLATE NOCASE" } ?? ""
            let (name, direction) = (column.sql, sort.order == .reverse ? " DESC" : "")
            if type?.isUnsigned == true { order.append("\(name) < 0\(direction)") }
            order.append(name + collation + direction)
        }
        // The plus keeps SQLite from preferring a scan in this order to an index search.
        order.append("\(descriptor.predicate == nil ? "" : "+")\(alias).\(TableLayout.key)")
        self.order = order.joined(separator: ", ")
        joins = .joined(scope.joins, "")
        if descriptor.fetchLimit != nil || descriptor.fetchOffset != nil {
            let most = descriptor.fetchLimit.map { Int64(max(0, $0)) } ?? -1
            limit = SQLText(
                " LIMIT ? OFFSET ?", [.integer(most), .integer(Int64(max(0, descriptor.fetchOffset ?? 0)))])
        } else {
            limit = SQLText("")
        }
    }

    /// The SQL to sort by, and the attribute's type. The type is nil for a part of a value that is stored as JSON.
    private static func column(
        _ keyPath: PartialKeyPath<T>, of model: ModelTerm, _ translator: PredicateTranslator
    ) throws -> (SQLText, Schema.AttributeType?)? {
        var (model, slot) = (model, model.layout.slot(keyPath))
        var part: StoredPart?
        if slot == nil, let probe = KeyPathProbe(keyPath, from: model.layout) {
            for link in probe.links {
                guard case .model(let next) = try translator.related(link, of: model) else { return nil }
                model = next
            }
            (slot, part) = (probe.slot, probe.part)
        }
        guard let slot, let column = model.layout.slots[slot].column,
            case .attribute(_, let type) = model.layout.slots[slot].kind
        else { return nil }
        if let part { return (part.sql(of: model.column(column)), nil) }
        return (model.column(column), type)
    }

    private var source: SQLText {
        let base = SQLText.format(" FROM \(entity.table.name.quotedName) t0@", joins)
        return condition.sql.isEmpty ? base : .format("@ WHERE @", base, condition)
    }

    /// Selects the row, the entity's name or NULL, and the columns of the table or the requested subset.
    var models: SQLText {
        .format(
            "SELECT \(partial.columns.map(entity.table.selection(of:)) ?? entity.table.selection)@ ORDER BY \(order)@",
            source, limit)
    }

    var identifiers: SQLText {
        let type = entity.table.hasTypeColumn ? "t0.\(TableLayout.type)" : "NULL"
        return .format("SELECT t0.\(TableLayout.key), \(type)@ ORDER BY \(order)@", source, limit)
    }

    var count: SQLText {
        guard !limit.sql.isEmpty else { return .format("SELECT count(*)@", source) }
        return .format("SELECT count(*) FROM (SELECT 1@@)", source, limit)
    }
}
