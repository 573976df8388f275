import GRDB
import MartletStore

// Reads a relationship of many models at once: one or two queries per thousand models.
extension ModelContext {
    /// Loads the targets of a relationship of fetched models.
    ///
    /// - Throws: ``SwiftDataError/unsupportedKeyPath`` if the key path isn't one of their relationships.
    func prefetch<T: PersistentModel>(_ keyPath: PartialKeyPath<T>, of models: [T], _ entity: EntityLayout) throws {
        guard let slot = entity.slot(keyPath), let link = entity.slots[slot].link else {
            throw SwiftDataError.unsupportedKeyPath.because("Only relationships of \(entity.name) can be prefetched.")
        }
        try throwingFailedReads {
            if let unit = container.unit(of: entity).snapshots { return try prefetch(slot, link, models, unit) }
            switch link.storage {
            case .column: try prefetchTargets(slot, link, models)
            case .inverse, .join, .list:
                // Unsaved models are only found one by one.
                if hasChanges {
                    for model in models { _ = model._$backing.targets(slot, link) }
                } else {
                    try prefetchSources(slot, link, models)
                }
            }
        }
    }

    private func prefetchTargets<T: PersistentModel>(_ slot: Int, _ link: Link, _ models: [T]) throws {
        var wanted: Set<Int64> = []
        for model in models {
            guard case .integer(let row) = model._$backing.stored(slot) else { continue }
            if registry.model(link.destination.table, row) == nil { wanted.insert(row) }
        }
        // Nothing else keeps the targets alive until their owners do.
        let held = try select(link.destination, TableLayout.key, in: wanted.sorted())
        for model in models { _ = model._$backing.one(slot) }
        withExtendedLifetime(held) {}
    }

    private func prefetchSources<T: PersistentModel>(_ slot: Int, _ link: Link, _ models: [T]) throws {
        let owners = models.filter { $0._$backing.related[slot] == nil && $0._$backing.row != nil }
        let rows = owners.compactMap(\._$backing.row).sorted()
        var found: [Int64: [any PersistentModel]] = [:]
        switch link.storage {
        case .column, .list: return
        case .inverse:
            guard let inverse = link.inverse, let column = link.destination.column(of: inverse) else { return }
            for model in try select(link.destination, column, in: rows) {
                let backing = model._$backing
                guard let end = backing.layout?.slot(named: inverse.name),
                    case .integer(let owner) = backing.stored(end)
                else { continue }
                found[owner, default: []].append(model)
            }
        case .join(let table, let own, let other):
            let pairs = try pairs(link.destination, table, own, other, rows)
            let targets = try select(link.destination, TableLayout.key, in: Set(pairs.map(\.other)).sorted())
            let byRow = Dictionary(targets.map { ($0._$backing.row, $0) }, uniquingKeysWith: { first, _ in first })
            for pair in pairs { if let target = byRow[pair.other] { found[pair.own, default: []].append(target) } }
        }
        for owner in owners {
            let targets = owner._$backing.row.flatMap { found[$0] } ?? []
            owner._$backing.related[slot] = link.isToMany ? .many(targets) : .one(targets.first)
        }
    }

    /// The models whose column contains one of these rows.
    ///
    /// - Parameter columns: the indices of the columns to read. Nil reads all.
    func select(
        _ entity: EntityLayout, _ column: String, in rows: [Int64], _ columns: [Int]? = nil
    ) throws -> [any PersistentModel] {
        let table = entity.table
        let selection = columns.map(table.selection(of:)) ?? table.selection
        var found: [any PersistentModel] = []
        for text in Self.lists(rows) {
            let fetched = try read(
                entity,
                """
                SELECT \(selection) FROM \(table.name.quotedName) t0 WHERE t0.\(column.quotedName) IN (\(text))
                ORDER BY 1
                """
            ) { try FetchedRow.all($0, entity, columns) }
            for row in fetched { found.append(try model(row, nil)) }
        }
        return found
    }

    private func pairs(_ entity: EntityLayout, _ table: String, _ own: String, _ other: String, _ rows: [Int64]) throws
        -> [(own: Int64, other: Int64)]
    {
        var found: [(own: Int64, other: Int64)] = []
        let (own, other) = (own.quotedName, other.quotedName)
        for text in Self.lists(rows) {
            try read(entity, "SELECT \(own), \(other) FROM \(table.quotedName) WHERE \(own) IN (\(text)) ORDER BY 1, 2")
            { statement in
                while try statement.step() { found.append((statement.integer(0), statement.integer(1))) }
            }
        }
        return found
    }

    private func read<R>(_ entity: EntityLayout, _ sql: String, _ body: (PreparedStatement) throws -> R) throws -> R {
        guard let access = container.unit(of: entity).tables?.access else {
            throw SwiftDataError.configuration.because("\(entity.name) is not stored in tables.")
        }
        return try access.read { try body(PreparedStatement($0, sql)) }
    }

    private static func lists(_ rows: [Int64]) -> [String] {
        stride(from: 0, to: rows.count, by: 1_000).map { start in
            rows[start..<min(start + 1_000, rows.count)].map(String.init).joined(separator: ", ")
        }
    }
}

extension TableLayout {
    /// The columns that a fetch selects from the table `t0`: the row, the entity's name or NULL, every column.
    var selection: String { selection(of: Array(columns.indices)) }

    func selection(of columns: [Int]) -> String {
        let type = hasTypeColumn ? "t0.\(Self.type)" : "NULL"
        let names = columns.map { "t0.\(self.columns[$0].name.quotedName)" }
        return (["t0.\(Self.key)", type] + names).joined(separator: ", ")
    }
}
