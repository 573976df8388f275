import Foundation
package import MartletAgent

/// Examines whether metrics can be pushed.
package enum TelemetryDoctor {
    /// Sends a request without metrics, which takes as long as the configured timeout at most. Returns nothing if
    /// metrics are not pushed.
    package static func examine(_ configuration: TelemetryConfiguration) -> [Finding] {
        guard configuration.isOn else { return [] }
        let problems = configuration.validate().map {
            Finding(
                check: "telemetry", level: .problem, message: $0,
                remedy: "Correct it: the agent does not start with it.")
        }
        guard problems.isEmpty, let body = try? ExportRequest.empty.json else { return problems }
        let shown = configuration.shownURL
        let outcome = CollectorClient.post(body, to: configuration, timeout: configuration.timeout)
        return unprotected(configuration) + [finding(outcome, shown)]
    }

    private static func finding(_ outcome: PushOutcome, _ shown: String) -> Finding {
        switch outcome {
        case .delivered, .cancelled:
            Finding(check: "telemetry", level: .ok, message: "\(shown) accepts metrics")
        case .refused(let reason):
            Finding(
                check: "telemetry", level: .problem, message: "\(shown) does not accept metrics: \(reason)",
                remedy: "Until then, no metrics arrive there. Nothing else is affected.")
        case .failed(let reason, _):
            Finding(
                check: "telemetry", level: .problem, message: "\(shown) can't be reached: \(reason)",
                remedy: "Check telemetry.otlp.endpoint, and that the collector runs. The agent keeps trying.")
        }
    }

    private static func unprotected(_ configuration: TelemetryConfiguration) -> [Finding] {
        guard let parts = configuration.metricsURL.flatMap({ URLComponents(string: $0) }),
            parts.scheme?.lowercased() == "http", !configuration.headers.isEmpty, let host = parts.host,
            ListenAddress("\(host):0")?.isLoopback != true
        else { return [] }
        return [
            Finding(
                check: "telemetry", level: .warning,
                message: "anybody on the way to \(host) can read the headers, which may hold a token",
                remedy: "Use a URL with https if the collector offers it.")
        ]
    }
}
