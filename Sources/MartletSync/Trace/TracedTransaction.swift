import Logging

/// A transaction on its way, for the log.
struct TracedTransaction: Sendable, Equatable {
    var origin: NodeID
    var sequence: Int64
    var trace: TraceContext

    /// The trace has the names that OpenTelemetry gives it in logs.
    var metadata: Logger.Metadata {
        [
            "origin": "\(origin)", "sequence": "\(sequence)", "trace_id": "\(trace.traceID)",
            "span_id": "\(trace.spanID)",
        ]
    }
}

extension Logger {
    /// Whether single transactions are logged. What is said of them is not even put together where not.
    var followsTransactions: Bool { logLevel <= .debug }
}
