import GRDB
import MartletBus
import MartletReplica
import MartletWire

/// Puts messages that can't be used into the dead-letter queue (quarantine).
struct MessageQuarantine {
    private let db: Database
    private let context: ReplicaContext
    private let messageGuard: MessageGuard
    private let triedKeys: TriedKeyRing
    private let topic: String

    init(
        _ db: Database, _ context: ReplicaContext, _ messageGuard: MessageGuard, _ triedKeys: TriedKeyRing,
        topic: String
    ) {
        self.db = db
        self.context = context
        self.messageGuard = messageGuard
        self.triedKeys = triedKeys
        self.topic = topic
    }

    /// - Parameters:
    ///   - payload: the assembled payload, if the message is the last of its chunks.
    ///   - topic: nil for the topic that is being read.
    func add(
        _ message: IncomingMessage, payload: TransactionPayload? = nil, of topic: String? = nil, _ error: WireError,
        _ report: inout ApplyReport
    ) throws {
        let topic = topic ?? self.topic
        // These headers describe the chunk, not the whole.
        let ofChunk = [
            WireHeader.checksum, WireHeader.chunk, WireHeader.size, WireHeader.wholeChecksum, WireHeader.keyID,
            WireHeader.signature,
        ]
        var source = QuarantinedSource(
            topic: topic, key: message.key,
            headers: message.headers.filter { payload == nil || !ofChunk.contains($0.name) },
            payload: message.payload, appended: message.isBrokerTimestamp ? message.timestamp : nil)
        if let payload { source.contents = payload }
        source.cut = payload == nil ? message.cut : nil
        source.isUnreadable = message.problem != nil
        if messageGuard.proves { source.proof = .opened }
        let space = QuarantineSpace(db, context, messageGuard.configuration, topic: topic)
        try space.add(source, error, at: message.position, isWhole: payload != nil)
        if let missing = error.missingKey { triedKeys.note(missing) }
        report.quarantined += 1
    }
}
