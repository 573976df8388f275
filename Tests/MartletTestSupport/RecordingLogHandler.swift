public import Logging

/// A log handler that passes on every event with all of its metadata.
public struct RecordingLogHandler: LogHandler {
    private let record: @Sendable (LogEvent, Logger.Metadata) -> Void
    public var metadata: Logger.Metadata = [:]
    public var logLevel = Logger.Level.trace

    public init(_ record: @escaping @Sendable (LogEvent, Logger.Metadata) -> Void) { self.record = record }

    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    public func log(event: LogEvent) { record(event, metadata.merging(event.metadata ?? [:]) { $1 }) }
}
