import MartletBus
import MartletCore
import MartletWire

/// The traces of received transactions.
extension Receiver {
    /// Returns the trace that the message names. Nil if this node doesn't use it.
    func trace(of message: IncomingMessage) -> TraceContext? {
        engine.configuration.traceHeaders.trace(of: message)
    }

    /// Returns the transaction's trace for the log. Nil for a message that names no transaction.
    func traced(_ decoded: DecodedMessage) -> TracedTransaction? {
        guard let envelope = try? decoded.envelope.get() else { return nil }
        return TracedTransaction(
            origin: envelope.origin, sequence: envelope.sequence,
            trace: trace(of: decoded.message) ?? TraceContext(origin: envelope.origin, sequence: envelope.sequence))
    }

    /// Returns the trace as the history stores it. Nil if it follows from origin and sequence.
    func givenContext(_ trace: TraceContext, _ origin: NodeID, _ sequence: Int64) -> String? {
        trace == TraceContext(origin: origin, sequence: sequence) ? nil : GivenTrace.context(of: trace)
    }
}
