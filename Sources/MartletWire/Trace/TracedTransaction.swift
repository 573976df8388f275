package import Logging
package import MartletCore

/// A transaction on its way, for the log.
package struct TracedTransaction: Sendable, Equatable {
    package var origin: NodeID
    package var sequence: Int64
    package var trace: TraceContext

    package init(origin: NodeID, sequence: Int64, trace: TraceContext) {
        self.origin = origin
        self.sequence = sequence
        self.trace = trace
    }

    /// The trace has the names that OpenTelemetry gives it in logs.
    package var metadata: Logger.Metadata {
        [
            "origin": "\(origin)", "sequence": "\(sequence)", "trace_id": "\(trace.traceID)",
            "span_id": "\(trace.spanID)",
        ]
    }
}

extension Logger {
    /// Whether single transactions are logged. What is said of them is not even put together where not.
    package var followsTransactions: Bool { logLevel <= .debug }
}
