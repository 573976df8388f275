public import Foundation
public import MartletStore

/// A message that can't be understood, in the dead-letter queue (quarantine).
public struct QuarantinedMessage: Sendable, Equatable {
    public var id: Int64
    public var topic: String
    public var partition: Int32
    public var offset: Int64
    public var reason: String
    public var headers: [String]
    /// Size of the payload. If the entry stands for several messages, the sum of their payloads.
    public var payloadBytes: Int
    /// How many of those bytes are kept. Fewer if the payload is too large or there is no room (`security.limits`).
    public var keptBytes: Int
    /// How many messages the entry stands for: messages for which there is no room share one entry.
    public var messageCount = 1
    /// The SHA-256 of the payload, if not all of it is kept. For an entry that stands for several messages, a running
    /// digest: for each message in order, the SHA-256 of the digest so far (empty at first) and that of the payload.
    public var digest: [UInt8]?
    public var since: Date
    /// The key that would decrypt the message. Absent if no key would.
    public var missingKey: String?
    /// False if it is not proven that the message comes from the origin that its headers name.
    public var isProven = true

    /// True if an engine without the agent's security settings could apply the message, whoever sent it.
    package var needsRules: Bool {
        !isProven && missingKey == nil && payloadBytes > 0 && keptBytes == payloadBytes
    }
}

extension Store {
    /// Returns the messages in the quarantine.
    public func quarantined() throws -> [QuarantinedMessage] { try readSync { try DeadLetters.all($0) } ?? [] }
}

extension QuarantinedMessage {
    /// Returns the error for an unknown number.
    public static func unknown(_ id: Int64) -> StoreError {
        StoreError(
            .invalidArgument, "There is no quarantined message \(id).",
            hint: "List them with `martlet quarantine STORE`.")
    }
}
