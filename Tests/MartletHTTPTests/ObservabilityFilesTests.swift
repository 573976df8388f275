import Foundation
import MartletHTTP
import MartletTestSupport
import Testing

/// The files for Prometheus and Grafana name only metrics that an agent serves, and the manual describes each metric.
@Suite struct ObservabilityFilesTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    private static func alerts() throws -> [String] {
        try text("docker/observability/alerts.yaml").matches(of: /- alert: (\w+)/).map { String($0.1) }
    }

    /// The queries of the dashboard, including those of its variables.
    private static func queries() throws -> [String] {
        let json = try JSONSerialization.jsonObject(with: Data(text("docker/observability/dashboard.json").utf8))
        func find(_ value: Any, _ found: inout [String]) {
            switch value {
            case let object as [String: Any]:
                for (key, inner) in object {
                    if key == "expr" || key == "definition", let query = inner as? String { found.append(query) }
                    find(inner, &found)
                }
            case let list as [Any]: for inner in list { find(inner, &found) }
            default: break
            }
        }
        var found: [String] = []
        find(json, &found)
        return found
    }

    /// The names of metrics in a query or rule.
    private static func names(_ text: String) -> Set<String> {
        let histograms = MetricCatalog.all.filter { $0.kind == "histogram" }.map(\.name)
        return Set(
            text.matches(of: /\b(?:martlet|process)_\w+/).map { match in
                let name = String(match.0)
                return histograms.first { name.hasPrefix($0 + "_") } ?? name
            })
    }

    private static let served = Set(MetricCatalog.all.map(\.name))

    @Test func theCatalogueFollowsTheConventionsOfPrometheus() {
        #expect(Self.served.count == MetricCatalog.all.count)
        for entry in MetricCatalog.all {
            #expect((entry.kind == "counter") == entry.name.hasSuffix("_total"), "\(entry.name)")
            #expect(entry.labels == entry.labels.sorted() && entry.help.hasSuffix("."), "\(entry.name)")
        }
    }

    @Test func alertsNameOnlyServedMetrics() throws {
        let names = Self.names(try Self.text("docker/observability/alerts.yaml"))
        #expect(names.count > 10)
        #expect(names.subtracting(Self.served) == [])
        let tested = Self.names(try Self.text("docker/observability/alerts.test.yaml"))
        #expect(tested == names)
    }

    @Test func theDashboardNamesOnlyServedMetrics() throws {
        let names = Self.names(try Self.queries().joined(separator: "\n"))
        #expect(names.count > 25)
        #expect(names.subtracting(Self.served) == [])
    }

    @Test func eachAlertHasATestAndARunbookSection() throws {
        let alerts = try Self.alerts()
        #expect(alerts.count == Set(alerts).count && alerts.count > 10)
        let tests = try Self.text("docker/observability/alerts.test.yaml")
        let manual = try Self.text("docs/operations.md")
        let rules = try Self.text("docker/observability/alerts.yaml")
        for alert in alerts {
            let part = tests.components(separatedBy: "  - name: ").first { $0.hasPrefix(alert + "\n") }
            #expect(part?.contains("exp_alerts:\n          - exp_labels:") == true, "\(alert) never fires in a test")
            #expect(part?.contains("exp_alerts: []") == true, "\(alert) never clears in a test")
            #expect(manual.contains("\n### \(alert)\n"), "\(alert)")
            #expect(rules.contains("docs/operations.md#\(alert.lowercased())\""), "\(alert)")
        }
        let described = manual.matches(of: /\n### (Martlet\w+)/).map { String($0.1) }
        #expect(Set(described) == Set(alerts))
    }

    @Test func theManualListsAllMetrics() throws {
        let rows = try Self.text("docs/operations.md").split(separator: "\n").filter {
            $0.hasPrefix("| `martlet_") || $0.hasPrefix("| `process_")
        }
        let expected = MetricCatalog.all.map {
            "| `\($0.name)` | \($0.kind) | \($0.labels.joined(separator: ", ")) | \($0.help) |"
        }
        #expect(Set(rows.map(String.init)) == Set(expected))
    }

    @Test func theManualNamesOnlyExistingLogEvents() throws {
        let manual = try Self.text("docs/operations.md")
        let table = try #require(manual.components(separatedBy: "## Log events").last)
        let messages = table.split(separator: "\n").filter { $0.hasPrefix("| ") }.dropFirst()
            .compactMap { $0.split(separator: "|").first?.trimmingCharacters(in: .whitespaces) }
        #expect(messages.count > 20)
        var code = ""
        let sources = FileManager.default.enumerator(
            at: Self.root.appendingPathComponent("Sources"), includingPropertiesForKeys: nil)
        while let file = sources?.nextObject() as? URL {
            if file.pathExtension == "swift" { code += try String(contentsOf: file, encoding: .utf8) }
        }
        for message in messages {
            let begin = message.components(separatedBy: "...").first ?? message
            #expect(code.contains("\"" + begin), "\(message)")
        }
    }

    @Test func theManualListsAllLogEvents() throws {
        let manual = try Self.text("docs/operations.md")
        let table = try #require(manual.components(separatedBy: "## Log events").last)
        let begins = table.split(separator: "\n").filter { $0.hasPrefix("| ") }.dropFirst()
            .compactMap { $0.split(separator: "|").first?.trimmingCharacters(in: .whitespaces) }
            .map { $0.components(separatedBy: "...").first ?? $0 }
        // Debug events are for people who read the code.
        let event = /\blog\.(?:info|notice|warning|error)\(\s*"([^"\\]+)["\\]/
        let sources = FileManager.default.enumerator(
            at: Self.root.appendingPathComponent("Sources"), includingPropertiesForKeys: nil)
        var count = 0
        while let file = sources?.nextObject() as? URL {
            guard file.pathExtension == "swift" else { continue }
            for match in try String(contentsOf: file, encoding: .utf8).matches(of: event) {
                let message = String(match.1)
                count += 1
                #expect(begins.contains { message.hasPrefix($0) || $0.hasPrefix(message) }, "\(message)")
            }
        }
        #expect(count > 50)
    }

    @Test(.enabled(if: Promtool.isThere, "promtool is not installed: scripts/install-dependencies.sh --test"))
    func promtoolTestsTheAlerts() throws {
        let folder = Self.root.appendingPathComponent("docker/observability")
        let rules = try Promtool.run(["check", "rules", folder.appendingPathComponent("alerts.yaml").path])
        #expect(rules.contains("SUCCESS: \(try Self.alerts().count) rules found"))
        let tests = try Promtool.run(["test", "rules", folder.appendingPathComponent("alerts.test.yaml").path])
        #expect(tests.contains("SUCCESS"))
        try Promtool.run(["check", "config", folder.appendingPathComponent("prometheus.yaml").path])
    }

    @Test(.enabled(if: Promtool.isThere, "promtool is not installed: scripts/install-dependencies.sh --test"))
    func promtoolAcceptsTheQueriesOfTheDashboard() throws {
        let queries = try Self.queries().filter { !$0.hasPrefix("label_values") }
        var rules = "groups:\n  - name: dashboard\n    rules:\n"
        for (number, query) in queries.enumerated() {
            let filled = query.replacing("$instance", with: "x").replacing("$__rate_interval", with: "1m")
            rules += "      - record: query:\(number)\n        expr: |-\n          \(filled)\n"
        }
        let folder = try TemporaryFolder()
        try rules.write(toFile: folder.path("rules.yaml"), atomically: true, encoding: .utf8)
        let answer = try Promtool.run(["check", "rules", folder.path("rules.yaml")])
        #expect(answer.contains("SUCCESS: \(queries.count) rules found"))
    }
}
