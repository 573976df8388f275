import Foundation
import MartletKafka

/// The variables that OpenTelemetry specifies, as far as they concern metrics:
/// https://opentelemetry.io/docs/specs/otel/protocol/exporter/ and
/// https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
extension TelemetryConfiguration {
    /// Applies variables of the environment. Of two, the one for metrics overrides the general one. An empty one counts
    /// as not set.
    mutating func readEnvironment(_ environment: [String: String]) {
        let values = environment.filter { !$0.value.trimmingCharacters(in: .whitespaces).isEmpty }
        /// The value and the name of the variable that has it.
        func variable(_ name: String) -> (name: String, value: String)? {
            for prefix in ["OTEL_EXPORTER_OTLP_METRICS_", "OTEL_EXPORTER_OTLP_"] {
                if let value = values[prefix + name] { return (prefix + name, value) }
            }
            return nil
        }
        environmentProblems = []
        if let url = values["OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"] {
            metricsURL = url.trimmingCharacters(in: .whitespaces)
        } else if let base = values["OTEL_EXPORTER_OTLP_ENDPOINT"] {
            metricsURL = Self.metricsURL(base: base)
        }
        if values["OTEL_SDK_DISABLED"]?.lowercased() == "true" || values["OTEL_METRICS_EXPORTER"] == "none" {
            metricsURL = nil
        }
        if let (name, value) = variable("PROTOCOL"), !value.hasPrefix("http/") {
            environmentProblems.append(
                "\(name): \(value) is not supported; set it to http/json, and the endpoint to the collector's port "
                    + "for HTTP, usually 4318")
        }
        if let (name, value) = variable("HEADERS") {
            if let pairs = Self.pairs(value, separator: ",", isEncoded: true) {
                headers = pairs.mapValues { Secret($0) }
            } else {
                environmentProblems.append("\(name): must be name=value, comma-separated, with percent-encoded values")
            }
        }
        if let (name, value) = variable("TIMEOUT") { readMilliseconds(name, value, \.timeout) }
        if let value = values["OTEL_METRIC_EXPORT_INTERVAL"] {
            readMilliseconds("OTEL_METRIC_EXPORT_INTERVAL", value, \.interval)
        }
        if let (_, value) = variable("CERTIFICATE") { caFile = value }
        if let value = values["OTEL_RESOURCE_ATTRIBUTES"] {
            if var pairs = Self.pairs(value, separator: ",", isEncoded: true) {
                serviceName = pairs.removeValue(forKey: "service.name") ?? serviceName
                attributes.merge(pairs) { $1 }
            } else {
                environmentProblems.append(
                    "OTEL_RESOURCE_ATTRIBUTES: must be name=value, comma-separated, with percent-encoded values")
            }
        }
        serviceName = values["OTEL_SERVICE_NAME"] ?? serviceName
    }

    private mutating func readMilliseconds(
        _ name: String, _ value: String, _ field: WritableKeyPath<TelemetryConfiguration, Duration>
    ) {
        // The limits of validation are narrower.
        if let number = Int64(value), (1...1_000_000_000).contains(number) {
            self[keyPath: field] = .milliseconds(number)
        } else {
            environmentProblems.append("\(name): must be a number of milliseconds, without a unit")
        }
    }

    /// Parses `name=value` pairs. Nil if one has no name or no `=`, or is not encoded right.
    static func pairs(_ text: String, separator: Character, isEncoded: Bool) -> [String: String]? {
        var pairs: [String: String] = [:]
        for part in text.split(whereSeparator: { $0 == separator || $0.isNewline }) {
            let part = part.trimmingCharacters(in: .whitespaces)
            guard !part.isEmpty else { continue }
            guard let equal = part.firstIndex(of: "=") else { return nil }
            let name = part[..<equal].trimmingCharacters(in: .whitespaces)
            let value = part[part.index(after: equal)...].trimmingCharacters(in: .whitespaces)
            guard !name.isEmpty, let decoded = isEncoded ? value.removingPercentEncoding : value else { return nil }
            pairs[name] = decoded
        }
        return pairs
    }
}

extension AgentConfiguration {
    mutating func readTelemetry(_ reader: inout KeyReader, _ readFile: (String) throws -> String) {
        if let base = reader.text("telemetry.otlp.endpoint") {
            telemetry.metricsURL = TelemetryConfiguration.metricsURL(base: base)
        }
        telemetry.metricsURL = reader.text("telemetry.otlp.metricsEndpoint") ?? telemetry.metricsURL
        for (name, value) in reader.table("telemetry.otlp.headers") ?? [:] { telemetry.headers[name] = Secret(value) }
        if let file = reader.text("telemetry.otlp.headersFile"),
            let text = reader.contents(of: file, "telemetry.otlp.headersFile", readFile)
        {
            secretFiles["telemetry.otlp.headersFile"] = file
            if let pairs = TelemetryConfiguration.pairs(text, separator: "\n", isEncoded: false) {
                telemetry.headers.merge(pairs.mapValues { Secret($0) }) { $1 }
            } else {
                reader.problem("telemetry.otlp.headersFile: each line of \(file) must be name=value")
            }
        }
        telemetry.interval = reader.duration("telemetry.otlp.interval") ?? telemetry.interval
        telemetry.timeout = reader.duration("telemetry.otlp.timeout") ?? telemetry.timeout
        telemetry.caFile = reader.text("telemetry.otlp.caFile")
        telemetry.serviceName = reader.text("telemetry.otlp.serviceName") ?? telemetry.serviceName
        telemetry.attributes = reader.table("telemetry.otlp.attributes") ?? telemetry.attributes
    }
}
