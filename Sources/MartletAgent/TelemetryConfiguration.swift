import Foundation
public import MartletKafka

/// Where the agent pushes its metrics to, by OTLP over HTTP, and how often.
public struct TelemetryConfiguration: Sendable, Equatable {
    /// The URL that takes metrics, with its path. Nil (the default): nothing is pushed.
    public var metricsURL: String?
    /// Sent with each request, by their names. They may hold tokens.
    public var headers: [String: Secret] = [:]
    /// The time between two pushes. Default: 60 seconds.
    public var interval = Duration.seconds(60)
    /// How long one request may take. Default: 10 seconds.
    public var timeout = Duration.seconds(10)
    /// A PEM file with the certificate authorities to trust. Nil (the default): the system's.
    public var caFile: String?
    /// The resource attribute `service.name`. Default: `martlet`.
    public var serviceName = "martlet"
    /// Further resource attributes.
    public var attributes: [String: String] = [:]
    /// What is wrong with variables of the environment. They count only if metrics are pushed: the environment may be
    /// meant for other programs.
    var environmentProblems: [String] = []

    public init() {}

    /// True if metrics are pushed.
    public var isOn: Bool { metricsURL != nil }

    /// The path under a base URL that takes metrics.
    private static let path = "/v1/metrics"

    /// Returns the URL for metrics under the base URL of a collector.
    static func metricsURL(base: String) -> String {
        let base = base.trimmingCharacters(in: .whitespaces)
        // Validation refuses what is no URL.
        guard var parts = parse(base) else { return base }
        while parts.path.hasSuffix("/") { parts.path.removeLast() }
        parts.path += path
        return parts.string ?? base
    }

    private static func parse(_ url: String) -> URLComponents? {
        URLComponents(string: url, encodingInvalidCharacters: false)
    }

    /// The URL without what may be secret: only protocol, host, port and path.
    package var shownURL: String {
        guard let metricsURL, var parts = Self.parse(metricsURL) else { return "?" }
        parts.user = nil
        parts.password = nil
        parts.query = nil
        parts.fragment = nil
        return parts.string ?? "?"
    }

    /// The shortest interval: collecting reads the store.
    private static let shortest = Duration.seconds(1)

    /// Returns every problem, as `key: what is wrong with the value`.
    public func validate() -> [String] {
        guard let metricsURL else { return [] }
        var problems = environmentProblems
        func add(_ key: String, _ text: String) { problems.append("telemetry.otlp.\(key): \(text)") }
        if let parts = Self.parse(metricsURL), ["http", "https"].contains(parts.scheme?.lowercased()),
            parts.host?.isEmpty == false, metricsURL.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
        {
            if parts.user != nil || parts.password != nil {
                add("endpoint", "must not contain a user or password; use telemetry.otlp.headersFile")
            }
        } else {
            add("endpoint", "must be a URL of http or https, such as https://collector.example:4318")
        }
        problems += Self.problems(headers)
        if interval < Self.shortest || interval > .seconds(86_400) { add("interval", "must be from 1s to 1d") }
        if timeout < .milliseconds(100) || timeout > .seconds(600) { add("timeout", "must be from 100ms to 10m") }
        if let caFile, !FileManager.default.isReadableFile(atPath: caFile) {
            add("caFile", "\(caFile) can't be read; correct the path, or let the agent's user read the file")
        }
        if serviceName.isEmpty { add("serviceName", "must not be empty") }
        if attributes.keys.contains("") { add("attributes", "an attribute must have a name") }
        return problems
    }

    /// Headers that the request gets anyway.
    private static let own: Set = ["content-type", "content-length", "content-encoding", "transfer-encoding", "expect"]

    /// Doesn't show values.
    private static func problems(_ headers: [String: Secret]) -> [String] {
        headers.sorted { $0.key < $1.key }.compactMap { name, value in
            guard isHeaderName(name) else {
                return "telemetry.otlp.headers: a name must consist of letters, digits and hyphens"
            }
            guard !own.contains(name.lowercased()) else {
                return "telemetry.otlp.headers: \(name) can't be set; leave it out"
            }
            // An empty value, and a line end above all, would change the meaning of the line.
            guard !value.value.isEmpty, value.value.utf8.allSatisfy({ (0x20...0x7e).contains($0) }) else {
                return "telemetry.otlp.headers: the value of \(name) must consist of visible ASCII characters"
            }
            return nil
        }
    }

    private static func isHeaderName(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.allSatisfy { "!#$%&'*+-.^_`|~".utf8.contains($0) || isAlphanumeric($0) }
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: false
        }
    }
}
