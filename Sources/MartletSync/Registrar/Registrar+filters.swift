import GRDB
import MartletStore

/// What of local changes a filter keeps here (docs/decisions/0022). Such a change gets its clocks like any other, in
/// the name of ``/MartletCore/NodeID/withheld``, and no message.
extension Registrar {
    /// True for a table of which nothing is published.
    func isIgnored(_ entity: Entity) -> Bool { context.filters[entity]?.isIgnored ?? false }

    /// Notes that something stays here of a row that others have: a snapshot of this node would lack what they know of
    /// it.
    func noteWithheldOfKnown() throws {
        guard !context.hasWithheldOfKnown else { return }
        try context.setMeta(db, SyncMeta.withheldOfKnown, 1)
        context.hasWithheldOfKnown = true
    }

    /// True where a row with the values of the change stays here, if it is new.
    func withholds(_ change: LogChange) throws -> Bool {
        guard let rule = context.filters[change.entity] else { return false }
        if rule.isIgnored { return true }
        guard let condition = rule.publish else { return false }
        let values = Dictionary(change.values.map { ($0.column.slot, $0.value) }, uniquingKeysWith: { a, _ in a })
        return try !condition.holds(values)
    }

    /// Publishes a row that was kept here, where it meets the condition now: all of it, as one insert.
    ///
    /// What the row is now decides, and is published: it may be later than the change. Later changes of it follow with
    /// their own clocks.
    ///
    /// - Returns: false where it stays.
    func publishIfItEnters(_ change: LogChange, _ identity: StableID, _ wire: inout [WireChange]) throws -> Bool {
        guard let rule = context.filters[change.entity], !rule.isIgnored else { return false }
        let table = context.table(change.entity)
        guard let found = try table.find(db, identity), let values = try table.read(db, found.address),
            try rule.publish?.holds(values) ?? true,
            let message = try Withheld(db, context).release(table, identity, at: tick(change))
        else { return false }
        wire.append(message)
        return true
    }
}
