package import GRDB
import MartletStore
package import MartletWire

extension Outbox {
    /// Adds changes that no row of the log stands for, as a transaction of this node. Their steps are whole clock
    /// readings, ascending.
    ///
    /// - Parameter late: this node's transactions that it replaces.
    package static func publish(
        _ changes: [WireChange], _ db: Database, _ context: ReplicaContext, as encoding: WireEncoding,
        replacing late: [Int64] = []
    ) throws {
        guard !changes.isEmpty || !late.isEmpty else { return }
        var header = WireTransaction()
        if changes.isEmpty { header.hlc = context.clock.tick().rawValue }
        header.timestampMs = context.now()
        header.restates = late.map { UInt64($0) }
        let stamped = try context.meta(db, MetaKey.stamped) ?? 0
        var outbox = try Outbox(db, context)
        try outbox.append(OutgoingChanges(changes), header: header, of: stamped, as: encoding)
        context.clock.note()
        try outbox.close()
    }
}
