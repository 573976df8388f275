import Foundation
import GRDB
import MartletCore
import MartletMerge
import MartletReplica
import MartletStore
import MartletWire

extension StoreComparison {
    /// Compares stores without writing to them. Agents may run on them.
    ///
    /// Reads each table once, and the ranges that differ a second time.
    /// - Parameter limit: the most differences that are listed individually. All are counted.
    /// - Throws: ``/MartletCore/StoreError`` when a store can't be read, or has never synced.
    public static func compare(_ paths: [String], limit: Int = 20) throws -> StoreComparison {
        try ComparedStore.withAll(paths[...], []) { stores in
            var comparer = StoreComparer(stores, limit: limit)
            try comparer.run()
            return comparer.result
        }
    }
}

/// A store that is compared, in one read transaction.
final class ComparedStore {
    let path: String
    let db: Database
    let context: ReplicaContext
    let reader: RecordReader
    /// Tables that can't be compared.
    let held: Set<Int64>
    let vector: VersionVector
    let names: [NodeID: String]
    /// Changed rows that are not enqueued yet, by entity.
    let unstamped: [Int64: Set<StableID>]
    /// Pending rows and values, by entity.
    let waiting: [Int64: Set<WaitingPart>]

    private init(_ path: String, _ db: Database) throws {
        self.path = path
        self.db = db
        context = try ReplicaContext(db, now: { WallClock.milliseconds })
        reader = try RecordReader(db, context)
        held = try reader.tablesWithPendingChanges()
        let origins = try context.origins(db)
        vector = try VersionVector(origins)
        names = Dictionary(
            origins.compactMap { origin in NodeID(bytes: origin.node).map { ($0, origin.name) } },
            uniquingKeysWith: { a, _ in a })
        unstamped = try Self.unstamped(db, context)
        waiting = try WaitingPart.all(db, context)
    }

    /// Opens all of the stores for reading.
    static func withAll<T>(
        _ paths: ArraySlice<String>, _ opened: [ComparedStore], _ body: ([ComparedStore]) throws -> T
    ) throws -> T {
        guard let path = paths.first else { return try body(opened) }
        var configuration = StoreConfiguration()
        configuration.isReadOnly = true
        let store = try Store(path: path, configuration: configuration)
        let result = Result {
            try store.read { db in
                try check(path, db)
                return try withAll(paths.dropFirst(), opened + [try ComparedStore(path, db)], body)
            }
        }
        try store.close()
        return try result.get()
    }

    private static func check(_ path: String, _ db: Database) throws {
        guard let uuid = try Meta.text(db, SyncMeta.node).flatMap(UUID.init(uuidString:)),
            try NodeDirectory.number(db, of: NodeID(uuid)) != nil
        else {
            throw StoreError(
                .invalidArgument, "\(path) has never synced: its rows have no clocks to compare.",
                hint: "Run an agent on it first.")
        }
        try SyncSchema.requireCurrent(db, of: path)
    }

    /// Returns the rows with entries in the log that have no clocks yet.
    static func unstamped(_ db: Database, _ context: ReplicaContext) throws -> [Int64: Set<StableID>] {
        var rows: [Int64: Set<StableID>] = [:]
        guard let range = try UnstampedChanges.range(db) else { return rows }
        try context.log.forEach(from: range.lowerBound, to: range.upperBound + 1) { change in
            let entity = change.entity
            let table = context.table(entity)
            for row in [change.row, change.before?.row].compactMap(\.self) where entity.isKeyedByInteger {
                if let kept = try table.keptIdentity(db, row: row) { rows[entity.id, default: []].insert(kept) }
            }
            for values in [change.values, change.before?.values ?? []] {
                let local = entity.identityColumns.compactMap { column in
                    values.first { $0.column.slot == column.slot }?.value
                }
                guard !local.isEmpty, local.count == entity.identityColumns.count,
                    let name = try context.resolver.identity(db, entity, localValues: local)
                else { continue }
                rows[entity.id, default: []].insert(name)
            }
        }
        return rows
    }
}

/// Compares stores table by table: first ranges of rows, then the rows of the ranges that differ.
struct StoreComparer {
    /// The most rows of each store that are in memory at once.
    private static let groupRows = 20_000

    let stores: [ComparedStore]
    private let limit: Int
    private let judge: RowJudge
    var result: StoreComparison
    /// Rows with a difference, by table.
    private var known: [String: Set<StableID>] = [:]

    init(_ stores: [ComparedStore], limit: Int) {
        self.stores = stores
        self.limit = limit
        judge = RowJudge(vectors: stores.map(\.vector))
        let forgotten = stores.map(\.context.collected.time).max() ?? .zero
        for store in stores { store.reader.ignored = forgotten }
        result = StoreComparison(
            members: stores.map { store in
                StoreComparison.Member(
                    path: store.path, node: store.context.node, name: store.context.nodeName,
                    missing: Self.missing(store, stores),
                    uncheckedRowCount: store.unstamped.values.reduce(0) { $0 + $1.count })
            })
    }

    private static func missing(_ store: ComparedStore, _ stores: [ComparedStore]) -> [StoreComparison.Missing] {
        var counts: [NodeID: Int64] = [:]
        var names: [NodeID: String] = [:]
        for other in stores {
            for node in other.vector.sets.keys {
                let count = store.vector.missingCount(other.vector, of: node)
                if count > counts[node] ?? 0 { counts[node] = count }
                names[node] = other.names[node]
            }
        }
        return counts.sorted { $0.key < $1.key }.map {
            StoreComparison.Missing(origin: $0.key, originName: names[$0.key] ?? "", count: $0.value)
        }
    }

    mutating func run() throws {
        let names = Set(stores.flatMap { $0.context.catalog.entities.map(\.name) }).sorted()
        for name in names { try compare(name) }
        try compareWaiting()
        result.differences.sort { $0.kind == .divergent && $1.kind != .divergent }
        result.differences = Array(result.differences.prefix(limit))
    }

    private mutating func compare(_ name: String) throws {
        let entities = stores.map { $0.context.catalog[name] }
        var table = StoreComparison.Table(
            name: name,
            rowCounts: try zip(stores, entities).map { store, entity in
                try entity.map { entity in
                    try RecordReader.rowCount(store.db, entity)
                }
            })
        let all = entities.compactMap(\.self)
        if all.count < stores.count {
            table.skipped = "not tracked in all of them"
        } else if Set(all.map { RecordShape($0).digest }).count > 1 {
            table.skipped = "its columns differ"
        } else if zip(stores, all).contains(where: { $0.held.contains($1.id) }) {
            table.skipped = "changes of it are parked (martlet parked)"
        } else {
            table.waiting = StoreComparison.Waiting.count(zip(stores, all).map { $0.waiting[$1.id] ?? [] })
            try compare(all, &table)
        }
        result.tables.append(table)
    }

    private mutating func compare(_ entities: [Entity], _ table: inout StoreComparison.Table) throws {
        let rows = table.rowCounts.compactMap(\.self).max() ?? 0
        let ranges = KeyRange.every(level: KeyRange.level(forRows: rows))
        let sums = try zip(stores, entities).map { store, entity in
            try store.reader.sums(of: entity, ranges, countsUnclocked: true)
        }
        var group: Set<KeyRange> = []
        var size = 0
        for range in ranges where sums.contains(where: { $0[range] != sums[0][range] }) {
            group.insert(range)
            size += sums.compactMap { $0[range]?.rows }.max() ?? 0
            guard size >= Self.groupRows else { continue }
            try compare(entities, group, &table)
            (group, size) = ([], 0)
        }
        if !group.isEmpty { try compare(entities, group, &table) }
    }

    private mutating func compare(
        _ entities: [Entity], _ ranges: Set<KeyRange>, _ table: inout StoreComparison.Table
    ) throws {
        var records: [StableID: [RowRecord?]] = [:]
        for (index, entity) in entities.enumerated() {
            try stores[index].reader.forEach(entity, in: ranges) { record in
                records[record.identity, default: Array(repeating: nil, count: stores.count)][index] = record
            }
        }
        for (identity, row) in records.sorted(by: { $0.key.bytes.lexicographicallyPrecedes($1.key.bytes) }) {
            let isUnchecked = zip(stores, entities).contains { $0.unstamped[$1.id]?.contains(identity) ?? false }
            if isUnchecked {
                known[table.name, default: []].insert(identity)
            } else {
                compare(identity, row, entities, &table)
            }
        }
    }

    private mutating func compare(
        _ identity: StableID, _ row: [RowRecord?], _ entities: [Entity], _ table: inout StoreComparison.Table
    ) {
        let existence = row.map { record in
            record?.existence.map { existence in
                if case .alive(let stamp) = existence { return RowJudge.Register(stamp: stamp) }
                return RowJudge.Register(stamp: existence.stamp, isThere: false)
            }
        }
        if let kind = judge.judge(existence) { return add(kind, identity, nil, states(existence), &table) }
        for column in entities[0].sharedColumns.map(\.name).sorted() {
            let registers = zip(row, entities).map { record, entity -> RowJudge.Register? in
                guard let slot = entity.columns.first(where: { $0.name == column })?.slot else { return nil }
                return record?.register(slot).map { RowJudge.Register(stamp: $0.stamp, value: $0.value) }
            }
            let areNumbers = entities.contains { $0.column(named: column)?.wasReference ?? false }
            let judged = registers.map { areNumbers ? $0?.withoutNumber : $0 }
            if let kind = judge.judge(judged) { add(kind, identity, column, states(registers), &table) }
        }
    }

    private func states(_ registers: [RowJudge.Register?]) -> [StoreComparison.State?] {
        registers.map { register in
            register.map { StoreComparison.State(stamp: $0.stamp, value: $0.value, isThere: $0.isThere) }
        }
    }

    /// Returns true if the row has a difference, or can't be compared, apart from what is pending.
    func isKnown(_ identity: StableID, _ table: String) -> Bool { known[table]?.contains(identity) ?? false }

    mutating func add(
        _ kind: StoreComparison.Kind, _ identity: StableID, _ column: String?, _ states: [StoreComparison.State?],
        _ table: inout StoreComparison.Table
    ) {
        known[table.name, default: []].insert(identity)
        switch kind {
        case .divergent: table.divergentCount += 1
        case .behind: table.behindCount += 1
        case .unpublished: table.unpublishedCount += 1
        }
        // Divergent rows are listed first, however late they are found.
        let shown = result.differences.filter { kind != .divergent || $0.kind == .divergent }.count
        guard kind != .unpublished, shown < limit else { return }
        result.differences.append(
            StoreComparison.Difference(
                kind: kind, table: table.name, identity: identity, column: column, states: states))
    }
}
