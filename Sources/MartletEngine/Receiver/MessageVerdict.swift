import MartletBus
package import MartletCore
package import MartletReplica
package import MartletWire

/// What becomes of one message of the topic. The cases are in the order in which they are decided: deduplication by
/// position, authorization, echo suppression, deduplication by origin and sequence, integrity, and then what the
/// message carries.
///
/// Pure: ``judge(_:stored:isRewound:node:isNew:)`` is told what the store knows, and ``Receiver`` does what follows.
package enum MessageVerdict {
    /// The message lies before the offset to read next.
    case seen
    /// Another message than this one was read at its offset: the log was truncated or recreated, and the partition has
    /// to be reread. Also every later message of that partition in the same batch.
    case rewound
    /// The message only tests the connection.
    case probe
    /// The message doesn't say which transaction it belongs to.
    case unreadable(WireError)
    /// It is not proven that the message comes from the origin that it names. Nothing that it says of sequences counts.
    case unproven(WireEnvelope, WireError)
    /// This node has sent the message itself. It is never applied (echo suppression).
    case own(WireEnvelope)
    /// The transaction has arrived before.
    case duplicate
    /// The message can't be used. Its transaction stays missing.
    case rejected(WireEnvelope, WireError)
    /// The message is a part of a transaction that is too large for one message.
    case chunk((index: Int, count: Int), WireEnvelope)
    /// The message is a whole transaction of another node that has not arrived before.
    case transaction(DecodedTransaction, WireEnvelope)

    /// - Parameters:
    ///   - stored: how far the message's partition was read.
    ///   - isRewound: true if an earlier message of the batch has shown that the partition has to be reread.
    ///   - node: this node.
    ///   - isNew: returns whether a transaction has not arrived yet. Called at most once, and never with what is not
    ///     proven: looking an origin up makes it known.
    package static func judge(
        _ message: DecodedMessage, stored: ReadPositions.Offset, isRewound: Bool, node: NodeID,
        isNew: (WireEnvelope) throws -> Bool
    ) rethrows -> MessageVerdict {
        if isRewound { return .rewound }
        let offset = message.message.position.offset
        if offset < stored.next {
            return offset < stored.next - 1 || isLastRead(message, stored) ? .seen : .rewound
        }
        let envelope: WireEnvelope
        switch message.envelope {
        case .failure where message.message.isProbe: return .probe
        case .failure(let error): return .unreadable(message.refusal ?? error)
        case .success(let named): envelope = named
        }
        if let refusal = message.refusal { return .unproven(envelope, refusal) }
        if envelope.origin == node { return .own(envelope) }
        guard try isNew(envelope) else { return .duplicate }
        guard message.isIntact else { return .rejected(envelope, .notIntact) }
        if let chunk = envelope.chunk { return .chunk(chunk, envelope) }
        switch message.transaction {
        case .success(let transaction): return .transaction(transaction, envelope)
        case .failure(let error): return .rejected(envelope, error)
        // Every intact message that is no chunk was decoded.
        case nil: return .rejected(envelope, .notIntact)
        }
    }

    /// Returns true if the message is the one that was read last of its partition.
    private static func isLastRead(_ message: DecodedMessage, _ stored: ReadPositions.Offset) -> Bool {
        let envelope = try? message.envelope.get()
        // A recreated topic may have the same message at this offset, sent again and so with another timestamp.
        return stored.origin == envelope?.origin && stored.sequence == envelope?.sequence
            && stored.appended.map { $0 == message.message.timestamp } ?? true
    }
}
