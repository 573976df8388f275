import MartletWire

/// What receiving needs beside the store and the messages, the same for every batch and for retries.
package struct Inbound: Sendable {
    /// Path of the store's file, for errors.
    let path: String
    /// Says which messages are accepted, and has the limits.
    let messageGuard: MessageGuard
    /// Whether this node uses the traces that messages name.
    let traceHeaders: TraceHeaders
    /// Learns of transactions that came after their tombstones were collected.
    let late: LateTransactions
    /// Learns of messages that lack a key.
    let triedKeys: TriedKeyRing
}
