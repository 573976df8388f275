/// Which messages of a node have the headers of W3C Trace Context, and whether it goes by those of others.
public enum TraceHeaders: String, Sendable, CaseIterable {
    /// None, and those of others are not looked at. The default: they are 68 bytes a message, and nothing needs them.
    case never
    /// Those of transactions in whose context the application named its trace: the word `traceparent=...`, and
    /// `tracestate=...` where there is one.
    case given
    /// All. Where the application named no trace, that of ``TraceContext/init(origin:sequence:)``.
    case always

    /// The trace that a message says it is part of. Nil where this node goes by none, and for what is malformed or there twice.
    func trace(of message: IncomingMessage) -> TraceContext? {
        guard self != .never else { return nil }
        let found = message.headers.filter { $0.name == WireHeader.traceParent }
        return found.count == 1 ? TraceContext(bytes: found[0].value) : nil
    }
}

/// The trace of a transaction that is about to be sent. The same each time that it is sent, for as long as the history has it.
struct OutgoingTrace: Sendable, Equatable {
    var trace: TraceContext
    /// For each of its messages.
    var headers: [MessageHeader] = []

    init(_ entry: OutboxEntry, origin: NodeID, _ setting: TraceHeaders) {
        let given = setting == .never ? nil : entry.context.flatMap { GivenTrace(in: $0) }
        trace = given?.trace ?? TraceContext(origin: origin, sequence: entry.sequence)
        guard given != nil || setting == .always else { return }
        headers = [MessageHeader(WireHeader.traceParent, trace.traceparent)]
        if let state = given?.state { headers.append(MessageHeader(WireHeader.traceState, state)) }
    }
}
