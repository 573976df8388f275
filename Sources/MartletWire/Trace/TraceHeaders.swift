package import MartletBus

/// Which messages of a node carry W3C Trace Context headers, and whether the node reads these headers in messages of
/// other nodes.
public enum TraceHeaders: String, Sendable, CaseIterable {
    /// No messages, and headers of other nodes are ignored. The default: the headers take 68 bytes per message, and
    /// nothing depends on them.
    case never
    /// Transactions in whose context the application named its trace: with the word `traceparent=...`, and optionally
    /// `tracestate=...`.
    case given
    /// All transactions. If the application named no trace, the one of ``TraceContext/init(origin:sequence:)``.
    case always

    /// Returns the trace that a message claims to belong to. Returns nil if this node reads no trace headers, or if the
    /// header is malformed or occurs twice.
    package func trace(of message: IncomingMessage) -> TraceContext? {
        guard self != .never else { return nil }
        let found = message.headers.filter { $0.name == WireHeader.traceParent }
        return found.count == 1 ? TraceContext(bytes: found[0].value) : nil
    }
}
