import MartletBus
import MartletCore
import MartletReplica
import MartletWire

/// The trace of a transaction that is about to be sent. It stays the same each time that the transaction is sent, as
/// long as the history has it.
struct OutgoingTrace: Sendable, Equatable {
    var trace: TraceContext
    /// The headers of each of its messages.
    var headers: [MessageHeader] = []

    init(_ entry: OutboxEntry, origin: NodeID, _ setting: TraceHeaders) {
        let given = setting == .never ? nil : entry.context.flatMap { GivenTrace(in: $0) }
        trace = given?.trace ?? TraceContext(origin: origin, sequence: entry.sequence)
        guard given != nil || setting == .always else { return }
        headers = [MessageHeader(WireHeader.traceParent, trace.traceparent)]
        if let state = given?.state { headers.append(MessageHeader(WireHeader.traceState, state)) }
    }
}
