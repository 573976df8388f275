import Crypto
import Foundation
package import GRDB
import MartletCore
import MartletMerge
import MartletStore

/// Computes the digest of a store, on any of its connections.
package struct DigestReader {
    private let db: Database
    private let catalog: Catalog
    private let resolver: IdentityResolver
    private let inserts: UnstampedInserts
    /// The nodes and tombstones of a store that syncs.
    private let deletes: (nodes: NodeDirectory, tombstones: Tombstones)?
    private let filters: RowFilters

    package init(_ db: Database) throws {
        self.db = db
        let recorded = try Catalog.load(db)
        filters = try RowFilters(db, recorded)
        catalog = recorded.marking(local: filters.localSlots)
        resolver = IdentityResolver(catalog: catalog, statements: StatementCache())
        inserts = try UnstampedInserts(db, catalog)
        guard try db.hasTable("_martlet_shadows") else {
            deletes = nil
            return
        }
        let nodes = try NodeDirectory(db)
        deletes = (nodes, try Tombstones(db, nodes, StatementCache()))
    }

    private var syncs: Bool { deletes != nil }

    package func digest() throws -> StoreDigest {
        let ignored = filters.ignored
        let compared = catalog.entities.filter { !ignored.contains($0.id) }
        let entities = try compared.sorted { $0.name < $1.name }.map { entity in
            var sum = RangeSum()
            try addRows(of: entity, to: &sum)
            try addPendingRows(of: entity, to: &sum)
            return StoreDigest.Entity(name: entity.name, rowCount: sum.rows, digest: sum.sum.description)
        }
        var all = SHA256()
        for entity in entities { all.update(data: Data("\(entity.name)=\(entity.rowCount):\(entity.digest);".utf8)) }
        return StoreDigest(entities: entities, digest: Hex.text(all.finalize().prefix(16)))
    }

    private func addRows(of entity: Entity, to sum: inout RangeSum) throws {
        let names = ([entity.integerKey] + entity.columns.map { $0.name }).map { $0?.quotedName ?? "NULL" }
        let read = try PreparedStatement(db, "SELECT \(names.joined(separator: ", ")) FROM \(entity.name.quotedName)")
        let pending = try pendingReferences(of: entity)
        let unpublished = try unpublishedRows(of: entity)
        while try read.step() {
            var values: [String: Value] = [:]
            for (index, column) in entity.columns.enumerated() {
                let value = read.value(Int32(index + 1))
                values[column.name] = try portable(value, column)
            }
            // No other node has a row without an ID.
            guard let identity = try identity(of: entity, row: read.optionalInteger(0), values) else { continue }
            for (slot, value) in pending[identity] ?? [] {
                guard let column = entity.columns.first(where: { $0.slot == slot }) else { continue }
                values[column.name] = value
            }
            if unpublished.contains(identity) { continue }
            for column in entity.columns where column.isLocal { values[column.name] = nil }
            sum.add(row(identity, values, mark: 0))
        }
    }

    /// Returns the rows that a filter keeps on this node.
    private func unpublishedRows(of entity: Entity) throws -> Set<StableID> {
        guard syncs, filters[entity]?.publish != nil else { return [] }
        var rows: Set<StableID> = []
        let encoder = try SnapshotRowEncoder(db, ReplicaContext(db, now: { WallClock.milliseconds }))
        try encoder.forEachRecord(of: entity) { if $0.clocks.isUnpublished { rows.insert($0.identity) } }
        return rows
    }

    private func identity(of entity: Entity, row: Int64?, _ values: [String: Value]) throws -> StableID? {
        guard case .columns(let names) = entity.identity else {
            guard let row else { return nil }
            return try inserts.name(db, entity, row: row, resolver) ?? StableID(values: [.integer(row)])
        }
        if entity.recordsNames, let row, let name = try inserts.name(db, entity, row: row, resolver) { return name }
        let declared = names.map { values[$0] ?? .null }
        return declared.contains(.null) ? nil : StableID(values: declared)
    }

    private func portable(_ value: Value, _ column: EntityColumn) throws -> Value {
        guard let name = column.reference, let row = column.referredRow(value), let target = catalog[name] else {
            return value
        }
        guard let identity = try inserts.name(db, target, row: row, resolver) else { return value }
        return .reference(Reference(entity: name, identity: identity))
    }

    private func pendingReferences(of entity: Entity) throws -> [StableID: [(Int, Value)]] {
        try syncs ? PendingReferences.all(db, of: entity) : [:]
    }

    private func addPendingRows(of entity: Entity, to sum: inout RangeSum) throws {
        guard let deletes else { return }
        let pendingRows = try PreparedStatement(
            db,
            """
            SELECT id, ident, reason FROM _martlet_shadows WHERE entity = ?1 AND hlc IS NOT NULL
            AND reason IN ('missingTarget', 'unique', 'constraint', 'filtered')
            """)
        pendingRows.bind(1, entity.id)
        var defaults: [String: Value]?
        let columns = try PreparedStatement(
            db, "SELECT slot, value, reference, hlc, node FROM _martlet_shadow_columns WHERE shadow = ?1")
        while try pendingRows.step() {
            let identity = StableID(bytes: pendingRows.blob(1))
            if identity.hasNoIdentity { continue }
            var values: [String: Value] = [:]
            let deleted = try deletes.tombstones.find(db, entity.id, identity)
            columns.bind(1, pendingRows.integer(0))
            while try columns.step() {
                guard let column = entity.sharedColumns.first(where: { $0.slot == Int(columns.integer(0)) })
                else { continue }
                // Earlier versions kept values that a delete had overruled.
                if let deleted, deletes.nodes.stamp(columns, 3) <= deleted { continue }
                let isReference = columns.integer(2) != 0
                values[column.name] =
                    isReference ? try StableID(bytes: columns.blob(1)).values().first : columns.value(1)
            }
            // A column that the insert doesn't set has its default value on other nodes.
            let known = try defaults ?? DefaultValues.read(db, entity)
            defaults = known
            values.merge(known.filter { name, _ in entity.sharedColumns.contains { $0.name == name } }) { brought, _ in
                brought
            }
            // On other nodes the row is in its table, or will be.
            let isRow = [ParkReason.missingTarget, .filtered].contains { $0.rawValue == pendingRows.text(2) }
            let mark: UInt8 = isRow ? 0 : 1
            sum.add(row(identity, values, mark: mark))
        }
    }

    private func row(_ identity: StableID, _ values: [String: Value], mark: UInt8) -> DigestSum {
        var hash = SHA256()
        hash.update(data: [mark])
        hash.update(data: identity.bytes)
        for (name, value) in values.sorted(by: { $0.key < $1.key }) where !value.isNull {
            hash.update(data: Data(name.utf8))
            hash.update(data: [0])
            hash.update(data: StableID(values: [value]).bytes)
        }
        return DigestSum(bytes: hash.finalize().prefix(16))
    }
}
