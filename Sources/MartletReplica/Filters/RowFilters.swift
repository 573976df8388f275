import Foundation
package import GRDB
package import MartletCore
package import MartletMerge
package import MartletStore

extension NodeID {
    /// The node ID in stamps of what a filter keeps on this node: no other node ever sees such a stamp. Higher than
    /// every real node ID.
    package static let unpublished = NodeID(
        UUID(uuid: (255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255)))
}

/// The filters of a store, in terms of its present tables.
///
/// Confined to the connection of the context that it belongs to.
package final class RowFilters {
    package struct Rule {
        package var isIgnored = false
        package var publish: RowCondition?
        package var subscribe: RowCondition?
        /// Columns that stay on this node, by slot.
        package var localSlots: Set<Int> = []
    }

    package let filters: SyncFilters
    private let rules: [Int64: Rule]
    private let ignoredNames: Set<String>

    /// Reads the store's filters. A table that doesn't exist yet has no rule until it does.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` if a condition isn't valid for its table,
    ///   which a schema change can cause: it is better to publish nothing than what should stay here.
    package init(_ db: Database, _ catalog: Catalog) throws {
        filters = try SyncFilters.load(db)
        ignoredNames = Set(filters.ignoredTables.map { $0.lowercased() })
        rules = try filters.isEmpty ? [:] : Self.rules(db, filters, catalog)
    }

    private static func rules(_ db: Database, _ filters: SyncFilters, _ catalog: Catalog) throws -> [Int64: Rule] {
        var rules: [Int64: Rule] = [:]
        for name in filters.ignoredTables {
            for entity in catalog.entities(everNamed: name) { rules[entity.id, default: Rule()].isIgnored = true }
        }
        for entity in catalog.entities {
            let slots = filters.localSlots(entity)
            if !slots.isEmpty { rules[entity.id, default: Rule()].localSlots = slots }
        }
        func condition(_ sql: String, _ entity: Entity) throws -> RowCondition {
            let byName = try DefaultValues.read(db, entity)
            let defaults = entity.columns.compactMap { column in byName[column.name].map { (column.slot, $0) } }
            return try RowCondition(sql, entity, defaults: Dictionary(uniqueKeysWithValues: defaults))
        }
        for (name, sql) in filters.publish {
            for entity in catalog.entities(everNamed: name) {
                rules[entity.id, default: Rule()].publish = try condition(sql, entity)
            }
        }
        for (name, sql) in filters.subscribe {
            for entity in catalog.entities(everNamed: name) {
                rules[entity.id, default: Rule()].subscribe = try condition(sql, entity)
            }
        }
        return rules
    }

    package var isEmpty: Bool { rules.isEmpty && ignoredNames.isEmpty }

    package subscript(entity: Entity) -> Rule? { rules.isEmpty ? nil : rules[entity.id] }

    /// Returns true for a table of which nothing is taken, under this name or a former one.
    package func ignores(_ name: String, _ formerNames: [String]) -> Bool {
        !ignoredNames.isEmpty && ([name] + formerNames).contains { ignoredNames.contains($0.lowercased()) }
    }

    /// The columns that stay on this node, as slots by table.
    package var localSlots: [Int64: Set<Int>] { rules.mapValues(\.localSlots).filter { !$0.value.isEmpty } }

    /// The ignored tables.
    package var ignored: Set<Int64> { Set(rules.filter(\.value.isIgnored).keys) }

    /// Returns true if a remote row may be in its table.
    ///
    /// - Parameter node: this node, whose own rows always may.
    package func takes(_ entity: Entity, _ clocks: RowClocks, _ values: [Int: Value], node: NodeID) throws -> Bool {
        guard let condition = self[entity]?.subscribe, let inserted = clocks.inserted, inserted != .zero,
            inserted.node != node, inserted.node != .unpublished
        else { return true }
        return try condition.holds(values)
    }
}

extension Catalog {
    /// Returns the table of this name, ignoring case.
    package func entity(named name: String) -> Entity? {
        entities.first { $0.name == name } ?? entities.first { $0.name.lowercased() == name.lowercased() }
    }

    /// Returns the tables that have this name, or had it before they were renamed, ignoring case. A filter goes on to
    /// apply to a table that a program renames; where another table has the name now, it applies to both, so that
    /// nothing is published by accident.
    package func entities(everNamed name: String) -> [Entity] {
        entities.filter { entity in
            ([entity.name] + entity.formerNames).contains { $0.lowercased() == name.lowercased() }
        }
    }
}

extension Entity {
    /// Returns the columns that have this name, or had it before they were renamed, ignoring case.
    package func columns(everNamed name: String) -> [EntityColumn] {
        columns.filter { column in
            ([column.name] + column.formerNames).contains { $0.lowercased() == name.lowercased() }
        }
    }
}

extension SyncFilters {
    /// Returns the filters that the store has.
    package static func load(_ db: Database, _ key: String = SyncMeta.filters) throws -> SyncFilters {
        guard let text = try Meta.text(db, key) else { return SyncFilters() }
        do {
            return try JSONDecoder().decode(SyncFilters.self, from: Data(text.utf8))
        } catch {
            throw StoreError(
                .corrupt, "The filters in the store can't be read.", hint: "Restore the file from a backup.")
        }
    }

    package func save(_ db: Database, as key: String = SyncMeta.filters) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        try Meta.set(db, key, String(decoding: try encoder.encode(self), as: UTF8.self))
    }
}

extension RowClocks {
    /// True if a filter keeps the row itself on this node.
    package var isUnpublished: Bool { inserted?.node == .unpublished }

    package var hasUnpublished: Bool {
        inserted?.node == .unpublished || deleted?.node == .unpublished
            || exceptions.entries.contains { $0.stamp.node == .unpublished }
    }
}

extension RowRecord {
    /// The part of the row that other nodes may know. Nil if there is none.
    package var published: RowRecord? {
        guard clocks.hasUnpublished else { return self }
        var record = self
        let inserted = clocks.inserted.flatMap { $0.node == .unpublished ? nil : $0 }
        let deleted = clocks.deleted.flatMap { $0.node == .unpublished ? nil : $0 }
        var exceptions = ColumnStamps()
        for slot in values.keys {
            guard let stamp = clocks.exceptions[slot] ?? clocks.inserted, stamp.node != .unpublished else {
                record.values[slot] = nil
                continue
            }
            if stamp != inserted { exceptions[slot] = stamp }
        }
        guard inserted != nil || deleted != nil || !record.values.isEmpty else { return nil }
        record.clocks = RowClocks(inserted: inserted, deleted: deleted, exceptions: exceptions)
        return record
    }
}
