package import Logging
package import MartletCore

/// A transaction with its trace, for logging.
package struct TracedTransaction: Sendable, Equatable {
    package var origin: NodeID
    package var sequence: Int64
    package var trace: TraceContext

    package init(origin: NodeID, sequence: Int64, trace: TraceContext) {
        self.origin = origin
        self.sequence = sequence
        self.trace = trace
    }

    /// Metadata for logs. The trace has the field names of OpenTelemetry.
    package var metadata: Logger.Metadata {
        [
            "origin": "\(origin)", "sequence": "\(sequence)", "trace_id": "\(trace.traceID)",
            "span_id": "\(trace.spanID)",
        ]
    }
}

extension Logger {
    /// Whether single transactions are logged. If not, their log messages are not even composed.
    package var followsTransactions: Bool { logLevel <= .debug }
}
