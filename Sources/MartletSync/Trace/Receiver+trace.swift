/// Which trace a transaction is part of that came here.
extension Receiver {
    /// The one that its message names. Nil where this node goes by none.
    func trace(of message: IncomingMessage) -> TraceContext? {
        engine.configuration.traceHeaders.trace(of: message)
    }

    /// For the log. Nil for a message that names no transaction.
    func traced(_ decoded: DecodedMessage) -> TracedTransaction? {
        guard let envelope = try? decoded.envelope.get() else { return nil }
        return TracedTransaction(
            origin: envelope.origin, sequence: envelope.sequence,
            trace: trace(of: decoded.message) ?? TraceContext(origin: envelope.origin, sequence: envelope.sequence))
    }

    /// What the history keeps of a trace: nothing where it follows from origin and sequence.
    func givenContext(_ trace: TraceContext, _ origin: NodeID, _ sequence: Int64) -> String? {
        trace == TraceContext(origin: origin, sequence: sequence) ? nil : GivenTrace.context(of: trace)
    }
}
