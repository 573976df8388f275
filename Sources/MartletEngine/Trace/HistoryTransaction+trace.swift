import MartletCore
public import MartletStore
public import MartletWire

extension HistoryTransaction {
    /// The trace that the transaction is part of. That is the trace that its context names or, for a transaction from
    /// another node, the one that follows from its origin and sequence. Nil for a transaction of this node without a
    /// given trace: its sequence is not in the history.
    ///
    /// A transaction that came with a trace of its author has it in its context, if ``SyncConfiguration/traceHeaders``
    /// was not ``/MartletWire/TraceHeaders/never`` when it was applied.
    public var trace: TraceContext? {
        if let given = context.flatMap({ GivenTrace(in: $0) }) { return given.trace }
        return origin.map { TraceContext(origin: NodeID($0.node), sequence: $0.sequence) }
    }
}
