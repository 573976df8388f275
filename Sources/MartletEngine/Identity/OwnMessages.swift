import GRDB
import MartletCore
import MartletReplica
import MartletStore
import MartletWire

/// Evidence in a message that another store uses this store's node ID.
enum IdentityProblem: Sendable, Equatable {
    /// The topic has a transaction of this node that the store never sent, the store's last one being `last`.
    case ahead(sequence: Int64, last: Int64)
    /// The transaction under this sequence differs between the topic and the store.
    case differs(sequence: Int64)

    func error(store path: String) -> StoreError {
        let what =
            switch self {
            case .ahead(let sequence, let last):
                "The topic has transaction \(sequence) of this node, but the store has made only \(last)"
            case .differs(let sequence):
                "The topic and the store have different transactions \(sequence) of this node"
            }
        return StoreError(
            .copied,
            "\(what): the store was restored from a backup, or another copy of it is in use. Nothing was changed.",
            hint: "Run `martlet fork \(ShellWord.quoted(path))`: the store gets a node ID of its own, publishes what "
                + "only it has, and gets what it lacks from the topic.")
    }
}

/// Compares this node's messages on the topic with what the store has made.
enum OwnMessages {
    /// - Parameter payload: the message's payload. It is compared if it is the whole transaction.
    static func problem(_ db: Database, _ envelope: WireEnvelope, _ payload: [UInt8]) throws -> IdentityProblem? {
        let last = try Outbox.lastSequence(db)
        guard envelope.sequence <= last else { return .ahead(sequence: envelope.sequence, last: last) }
        guard envelope.chunk == nil else { return nil }
        // A transaction that has left the outbox can't be compared. One in parts may still fit into one message.
        guard let made = try Outbox.payload(db, envelope.sequence), made != payload else { return nil }
        // The migration to sync format 9 removed changes without a row identity. The message may already have been on
        // its way.
        if try WireTransaction.droppingChangesWithoutIdentity(payload) == made { return nil }
        return .differs(sequence: envelope.sequence)
    }
}
