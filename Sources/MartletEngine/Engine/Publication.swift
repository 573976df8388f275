import GRDB
import MartletReplica
package import MartletStore

/// The first half of a ``Delivery``: everything that was committed in a store up to one moment, on its way to the
/// topic.
package struct Publication: Sendable {
    /// The newest change at that moment, or 0 if there was none.
    private let change: Int64
    /// The sequence of the transaction that completes it on the topic, once it is known.
    package private(set) var sequence: Int64?

    /// - Throws: the same errors as ``Delivery/init(_:to:through:)``.
    package init(_ store: Store, through token: HistoryToken?) throws {
        change = try store.read { db in
            try token?.checkIsOf(store.identifier, db)
            return try UnstampedChanges.newestChange(db, through: token?.transaction ?? .max)
        }
    }

    /// Returns true once the broker has acknowledged everything, as far as the store knows: an agent records that
    /// within 200 milliseconds.
    ///
    /// - Throws: ``/MartletCore/StoreError`` if the store can't be read.
    package mutating func isAcknowledged(_ store: Store) throws -> Bool {
        let (stamped, isOpen, last, acknowledged) = try store.read { db in
            (
                try Meta.integer(db, MetaKey.stamped) ?? 0, try OpenTransaction.exists(db),
                try Outbox.lastSequence(db), try Meta.integer(db, SyncMeta.acknowledged) ?? 0
            )
        }
        // The outbox gets a transaction that takes several commits with its last part, also if all changes are stamped.
        guard stamped >= change, sequence != nil || !isOpen else { return false }
        let sequence = sequence ?? last
        self.sequence = sequence
        return acknowledged >= sequence
    }
}
