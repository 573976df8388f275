import GRDB
package import MartletCore
package import MartletStore
package import MartletWire

/// Decides which local changes a filter keeps on this node (docs/decisions/0022). They are stamped like any other
/// change, under the node ID `NodeID.unpublished`, but get no message.
extension Enqueuer {
    /// Returns true for a table of which nothing is published.
    package func isIgnored(_ entity: Entity) -> Bool { context.filters[entity]?.isIgnored ?? false }

    /// Records that a change to a row that others have stays on this node: a snapshot of this node would lack what they
    /// know of the row.
    package func noteUnpublishedOfKnown() throws {
        guard !context.hasUnpublishedOfKnown else { return }
        if try context.meta(db, SyncMeta.unpublishedOfKnown) == nil {
            try context.meta.set(db, SyncMeta.unpublishedOfKnown, 1)
        }
        context.hasUnpublishedOfKnown = true
    }

    /// Returns true if a new row with the values of the change stays on this node.
    package func withholds(_ change: LogChange) throws -> Bool {
        guard let rule = context.filters[change.entity] else { return false }
        if rule.isIgnored { return true }
        guard let condition = rule.publish else { return false }
        let values = Dictionary(change.values.map { ($0.column.slot, $0.value) }, uniquingKeysWith: { a, _ in a })
        return try !condition.holds(values)
    }

    /// Publishes an unpublished row as one insert, if it meets the condition now.
    ///
    /// The row's present state decides, and is what is published; it may be later than the change. Later changes of the
    /// row follow with their own clocks.
    ///
    /// - Returns: false if the row stays unpublished.
    package func publishIfItEnters(_ change: LogChange, _ identity: StableID, _ wire: inout OutgoingChanges) throws
        -> Bool
    {
        guard let rule = context.filters[change.entity], !rule.isIgnored else { return false }
        let table = context.table(change.entity)
        guard let found = try table.find(db, identity), let values = try table.read(db, found.address),
            try rule.publish?.holds(values) ?? true,
            let message = try UnpublishedChanges(db, context).release(table, identity, at: tick(change))
        else { return false }
        wire.append(message)
        return true
    }
}
