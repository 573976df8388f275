import Logging

/// The destination of log lines: the trace of a simulation. Safe because a simulation runs on one thread.
struct TraceLog: @unchecked Sendable {
    weak var simulation: Simulation?
}

/// Adds a node's warnings and errors to the trace.
struct TraceLogHandler: LogHandler {
    let trace: TraceLog
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.warning

    init(trace: TraceLog) { self.trace = trace }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let details = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { " \($0)=\($1)" }.joined()
        trace.simulation?.note("\(event.level): \(event.message)\(details)")
    }
}
