public import MartletStore

extension HistoryTransaction {
    /// The trace that the transaction is part of: the one that its context names, else, where it came from another
    /// node, that of its origin and sequence. Nil for one of this node that was given none: its sequence is not in the
    /// history.
    ///
    /// What came with a trace of its author's, and was applied while ``SyncConfiguration/traceHeaders`` was not
    /// ``/MartletWire/TraceHeaders/never``, has that one in its context.
    public var trace: TraceContext? {
        if let given = context.flatMap({ GivenTrace(in: $0) }) { return given.trace }
        return origin.map { TraceContext(origin: NodeID($0.node), sequence: $0.sequence) }
    }
}
