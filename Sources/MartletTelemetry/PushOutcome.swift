import Foundation

/// What became of one request to a collector.
package enum PushOutcome: Sendable, Equatable {
    /// The collector has taken the data points, except for the rejected ones.
    case delivered(rejected: Int64, message: String)
    /// The same request would be refused again.
    case refused(String)
    /// The same request may succeed later, after this time if the collector names one.
    case failed(String, retryAfter: Duration?)
    /// The program stops.
    case cancelled

    /// The statuses at which OTLP wants the request again.
    private static let retryable: Set = [429, 502, 503, 504]

    /// - Parameters:
    ///   - body: the beginning of the response's body.
    ///   - retryAfter: in seconds; 0 if the response doesn't say.
    package init(status: Int, body: String, retryAfter: Int64) {
        switch status {
        case 200..<300:
            let partial = Self.partialSuccess(body)
            self = .delivered(rejected: partial.rejected, message: partial.message)
        case let status where Self.retryable.contains(status):
            // An hour, whatever a server that is out of its mind says.
            let wait = Duration.seconds(min(max(retryAfter, 0), 3600))
            self = .failed(Self.text(status, body), retryAfter: wait == .zero ? nil : wait)
        default: self = .refused("\(Self.text(status, body)). \(Self.advice(status))")
        }
    }

    private static func text(_ status: Int, _ body: String) -> String {
        let reason = message(body)
        return "the collector answers \(status)" + (reason.isEmpty ? "" : ": \(reason)")
    }

    private static func advice(_ status: Int) -> String {
        switch status {
        case 300..<400: "It points to another address: set telemetry.otlp.endpoint to that one."
        case 400: "It can't read the request: does it take OTLP as JSON?"
        case 401, 403: "Check the token or key in telemetry.otlp.headersFile."
        case 404, 405:
            """
            Check telemetry.otlp.endpoint, to which /v1/metrics is appended; set telemetry.otlp.metricsEndpoint if \
            the collector has another path.
            """
        case 413: "Raise the size of requests that it accepts."
        case 415: "It does not take OTLP as JSON (application/json); a collector of OpenTelemetry does."
        default: "See the collector's log."
        }
    }

    /// The reason in a body with an error: its `message`, if it is JSON, and otherwise its beginning.
    private static func message(_ body: String) -> String {
        let text = (object(body)?["message"] as? String) ?? body
        return String(text.trimmingCharacters(in: .whitespacesAndNewlines).prefix(200))
    }

    private static func partialSuccess(_ body: String) -> (rejected: Int64, message: String) {
        guard let partial = object(body)?["partialSuccess"] as? [String: Any] else { return (0, "") }
        // As Protobuf's JSON has it, a string; a number in some implementations.
        let rejected = partial["rejectedDataPoints"]
        let count = (rejected as? String).flatMap { Int64($0) } ?? (rejected as? NSNumber)?.int64Value ?? 0
        return (max(0, count), String((partial["errorMessage"] as? String ?? "").prefix(200)))
    }

    private static func object(_ body: String) -> [String: Any]? {
        try? JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any]
    }
}
