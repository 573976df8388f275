import Foundation
package import MartletCore
import MartletMerge
import MartletStore
package import MartletWire

/// Translates the contents of a snapshot into the terms of this store, where tables and columns may have other names,
/// or be missing.
package struct SnapshotMapping {
    private let context: ReplicaContext
    private let header: WireSnapshotHeader
    private let nodes: [NodeID]
    /// For each entity of the snapshot, a change and its columns, without values.
    private let templates: [(change: WireChange, columns: [WireColumn])]
    /// For each entity of the snapshot, the indexes of the columns that are local here.
    private let local: [Set<Int>]
    private let unseen: UnseenStamps

    /// The translation of a row or a tombstone.
    package struct Translated {
        package var change: RemoteChange?
        /// The changes that this store's schema doesn't know, with their stamps.
        package var unknown: [(change: WireChange, stamp: Stamp, detail: String)] = []
        /// The change alone, if it has no row identity.
        package var withoutIdentity: (change: WireChange, stamp: Stamp)?
    }

    /// - Parameter unseen: the stamps of this node's changes that the snapshot's maker had not seen.
    package init(_ header: WireSnapshotHeader, _ context: ReplicaContext, unseen: UnseenStamps) throws(StoreError) {
        self.header = header
        self.context = context
        self.unseen = unseen
        var nodes: [NodeID] = []
        for bytes in header.nodes {
            guard let node = NodeID(bytes: bytes) else { throw SnapshotFormat.damaged("a node ID is not a UUID") }
            nodes.append(node)
        }
        self.nodes = nodes
        local = header.entities.map { entity in
            guard let own = context.catalog.entity(entity.name, entity.formerNames),
                own.columns.contains(where: \.isLocal)
            else { return [] }
            let table = context.table(own)
            return Set(
                entity.columns.indices.filter { index in
                    let names = [entity.columns[index].name] + entity.columns[index].formerNames
                    return names.lazy.compactMap(table.column).first?.isLocal ?? false
                })
        }
        templates = header.entities.map { entity in
            var change = WireChange()
            change.entity = entity.name
            change.formerEntities = entity.formerNames
            change.kind = .insert
            return (
                change,
                entity.columns.map { column in
                    var wire = WireColumn()
                    wire.name = column.name
                    wire.formerNames = column.formerNames
                    return wire
                }
            )
        }
    }

    private func template(_ entity: UInt32) throws(StoreError) -> (change: WireChange, columns: [WireColumn]) {
        guard Int(entity) < templates.count else { throw SnapshotFormat.damaged("a row belongs to an unknown table") }
        return templates[Int(entity)]
    }

    private func stamp(_ wire: WireSnapshotStamp) throws(StoreError) -> Stamp {
        guard Int(wire.node) < nodes.count else { throw SnapshotFormat.damaged("a timestamp is from an unknown node") }
        guard wire.hlc <= header.hlc else { throw SnapshotFormat.damaged("a timestamp is later than the snapshot") }
        // No node's clock ever gives this time.
        if wire.hlc == 0 { return .zero }
        return Stamp(time: HybridTime(rawValue: wire.hlc), node: nodes[Int(wire.node)])
    }

    // MARK: Deletes

    package func translate(_ tombstone: WireSnapshotTombstone) throws -> Translated {
        let deleted = try stamp(tombstone.deleted)
        var wire = try template(tombstone.entity).change
        wire.kind = .delete
        wire.identity = tombstone.identity
        guard wire.hasIdentity else { return Translated(withoutIdentity: (wire, deleted)) }
        do {
            var change = try RemoteChange(wire, stamp: deleted, context: context)
            change.state = RowState(clocks: RowClocks(deleted: deleted), unseen: unseen)
            return Translated(change: change)
        } catch let error as UnknownSchema {
            return Translated(unknown: [(wire, deleted, error.detail)])
        }
    }

    // MARK: Rows

    /// A row of the snapshot, with the stamp of each column.
    private struct Source {
        var change: WireChange
        var columns: [(column: WireColumn, stamp: Stamp)] = []
        /// The columns that are local here.
        var local: [(column: WireColumn, stamp: Stamp)] = []
        var inserted: Stamp?
        var deleted: Stamp?
    }

    package func translate(_ row: WireSnapshotRow) throws -> Translated {
        let source = try source(row)
        guard source.change.hasIdentity else {
            var wire = source.change
            wire.columns = source.columns.map(\.column)
            return Translated(withoutIdentity: (wire, source.inserted ?? source.deleted ?? .zero))
        }
        var translated: Translated
        do {
            translated = Translated(change: try change(source, source.columns))
        } catch let error as UnknownSchema {
            translated = try part(source, error.detail)
        }
        let local = updates(source, source.local.filter { $0.stamp != .zero })
        translated.unknown += local.map { ($0.change, $0.stamp, "a column is local") }
        return translated
    }

    private func source(_ row: WireSnapshotRow) throws -> Source {
        let template = try template(row.entity)
        var source = Source(change: template.change)
        source.change.identity = row.identity
        if row.hasLocalID { source.change.localID = row.localID }
        if row.hasInserted { source.inserted = try stamp(row.inserted) }
        if row.hasDeleted { source.deleted = try stamp(row.deleted) }
        var exceptions: [UInt32: Stamp] = [:]
        for exception in row.exceptions { exceptions[exception.column] = try stamp(exception.stamp) }
        let places =
            row.columns.isEmpty && !row.values.isEmpty ? template.columns.indices.map { UInt32($0) } : row.columns
        guard places.count == row.values.count, Set(places).count == places.count else {
            throw SnapshotFormat.damaged("a row does not have as many values as columns")
        }
        source.columns.reserveCapacity(places.count)
        for (index, place) in places.enumerated() {
            guard Int(place) < template.columns.count, let stamp = exceptions[place] ?? source.inserted else {
                throw SnapshotFormat.damaged("a value belongs to an unknown column, or has no timestamp")
            }
            var column = template.columns[Int(place)]
            column.value = row.values[index]
            if local[Int(row.entity)].contains(Int(place)) {
                source.local.append((column, stamp))
            } else {
                source.columns.append((column, stamp))
            }
        }
        return source
    }

    /// Makes the change of a row with these of its columns.
    private func change(_ source: Source, _ columns: [(column: WireColumn, stamp: Stamp)]) throws -> RemoteChange {
        var wire = source.change
        wire.columns = columns.map(\.column)
        let newest = ([source.inserted].compactMap(\.self) + columns.map(\.stamp)).max() ?? .zero
        var change = try RemoteChange(wire, stamp: newest, context: context)
        var exceptions = ColumnStamps()
        for (index, column) in columns.enumerated() where column.stamp != source.inserted {
            exceptions[change.columns[index].slot] = column.stamp
        }
        // A snapshot doesn't say which values these replaced.
        for index in change.columns.indices { change.columns[index].replaces = columns[index].stamp.time }
        let clocks = RowClocks(inserted: source.inserted, deleted: source.deleted, exceptions: exceptions)
        change.state = RowState(clocks: clocks, unseen: unseen)
        return change
    }

    // MARK: Unknown schema

    /// Translates a row of which this schema knows only a part. The known columns are applied; the others, or the whole
    /// row, become changes of their own, which are pending until the schema is migrated.
    private func part(_ source: Source, _ detail: String) throws -> Translated {
        var translated = Translated()
        var known: [(column: WireColumn, stamp: Stamp)] = []
        var unknown: [(column: WireColumn, stamp: Stamp)] = []
        for column in source.columns {
            if try isUnderstood(source, [column.column]) { known.append(column) } else { unknown.append(column) }
        }
        let rest = unknown.filter { $0.stamp != .zero }
        if try isUnderstood(source, known.map(\.column)), let change = try? change(source, known),
            change.table.identityColumns.allSatisfy({ column in
                change.columns.contains { $0.slot == column.slot } || change.entity.localKey != nil
            })
        {
            translated.change = change
            translated.unknown = updates(source, rest).map { ($0.change, $0.stamp, detail) }
            return translated
        }
        translated.unknown = changes(source).map { ($0.change, $0.stamp, detail) }
        return translated
    }

    private func isUnderstood(_ source: Source, _ columns: [WireColumn]) throws -> Bool {
        var wire = source.change
        wire.columns = columns
        do {
            _ = try RemoteChange(wire, stamp: .zero, context: context)
            return true
        } catch is UnknownSchema {
            return false
        }
    }

    private func updates(
        _ source: Source, _ columns: [(column: WireColumn, stamp: Stamp)]
    ) -> [(change: WireChange, stamp: Stamp)] {
        Dictionary(grouping: columns, by: \.stamp).sorted { $0.key < $1.key }.map { stamp, columns in
            var wire = source.change
            wire.kind = .update
            wire.clearLocalID()
            wire.columns = columns.map(\.column)
            return (wire, stamp)
        }
    }

    /// Returns changes that could have made the row.
    private func changes(_ source: Source) -> [(change: WireChange, stamp: Stamp)] {
        var changes: [(change: WireChange, stamp: Stamp)] = []
        if let deleted = source.deleted {
            var wire = source.change
            wire.kind = .delete
            wire.clearLocalID()
            changes.append((wire, deleted))
        }
        if let inserted = source.inserted {
            var wire = source.change
            // Includes values that were set later: each is repeated with its own stamp, and the table may need all of
            // them.
            wire.columns = source.columns.filter { $0.stamp >= inserted }.map(\.column)
            changes.append((wire, inserted))
        }
        return changes + updates(source, source.columns.filter { $0.stamp != source.inserted && $0.stamp != .zero })
    }
}
