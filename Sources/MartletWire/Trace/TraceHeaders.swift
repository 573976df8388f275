package import MartletBus

/// Which messages of a node have the headers of W3C Trace Context, and whether it goes by those of others.
public enum TraceHeaders: String, Sendable, CaseIterable {
    /// None, and those of others are not looked at. The default: they are 68 bytes a message, and nothing needs them.
    case never
    /// Those of transactions in whose context the application named its trace: the word `traceparent=...`, and
    /// `tracestate=...` where there is one.
    case given
    /// All. Where the application named no trace, that of ``TraceContext/init(origin:sequence:)``.
    case always

    /// The trace that a message says it is part of. Nil where this node goes by none, and for what is malformed or
    /// there twice.
    package func trace(of message: IncomingMessage) -> TraceContext? {
        guard self != .never else { return nil }
        let found = message.headers.filter { $0.name == WireHeader.traceParent }
        return found.count == 1 ? TraceContext(bytes: found[0].value) : nil
    }
}
