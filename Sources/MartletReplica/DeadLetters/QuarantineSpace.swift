import Foundation
package import MartletBus
import MartletStore
package import MartletWire

/// Puts messages into the quarantine, as far as there is room (`security.limits.maxQuarantineBytes`).
///
/// Messages for which there is no room are counted: one entry for each partition says how many there were, with a
/// digest over all of them. Their transactions count as missing, like those of all quarantined messages.
package struct QuarantineSpace {
    private let letters: DeadLetters
    private let limits: SecurityConfiguration
    private let topic: String
    /// The wall clock, in milliseconds since 1970.
    private let now: @Sendable () -> Int64

    package init(
        _ letters: DeadLetters, _ limits: SecurityConfiguration, topic: String, now: @escaping @Sendable () -> Int64
    ) {
        self.letters = letters
        self.limits = limits
        self.topic = topic
        self.now = now
    }

    /// Quarantines a payload that was no message of its own.
    func add(part payload: TransactionPayload, _ error: WireError) throws {
        var source = QuarantinedSource(topic: topic, key: nil, headers: [], payload: [], appended: nil)
        source.contents = payload
        try add(source, error, at: PartitionPosition(partition: -1, offset: -1), isWhole: true)
    }

    /// - Parameters:
    ///   - position: partition -1 if the payload was no message of its own.
    ///   - isWhole: true if the payload was assembled from chunks.
    package func add(
        _ source: QuarantinedSource, _ error: WireError, at position: PartitionPosition, isWhole: Bool
    ) throws {
        let now = now()
        var message = KeptMessage(
            reason: error.description, headers: source.headers, key: source.key, payload: source.contents,
            cut: source.cut)
        if source.isUnreadable { message.noteUnreadable() }
        if source.contents.count > (isWhole ? limits.maxTransactionBytes : limits.maxMessageBytes) || source.cut != nil
        {
            try message.keepBeginning(
                """
                raise security.limits.maxMessageBytes, and the agent reads the message again from the topic when it \
                starts; or discard it.
                """
            )
        }
        guard try position.partition < 0 || !letters.contains(message, topic: topic, at: position) else { return }
        let used = try letters.usedBytes()
        if used + message.storedBytes > limits.maxQuarantineBytes {
            try message.keepBeginning(
                """
                the quarantine is full (security.limits.maxQuarantineBytes). Make room, and the agent reads the \
                message again from the topic when it starts; or discard it.
                """
            )
        }
        guard used + message.storedBytes <= limits.maxQuarantineBytes else {
            let reason = """
                The quarantine had no room for these messages (security.limits.maxQuarantineBytes). Discard others: \
                once half of it is free, the agent rereads the partition when it starts.
                """
            return try letters.count(message.all(), reason: reason, topic: topic, at: position, now: now)
        }
        var source = source
        if error.isUnproven { source.proof = .failed }
        // A part of a deferred transaction leaves no transaction missing.
        let envelope = position.partition < 0 ? nil : try? source.envelope()
        try letters.add(
            message, source, missingKey: error.missingKey?.id, of: envelope, topic: topic, at: position, now: now)
    }
}
