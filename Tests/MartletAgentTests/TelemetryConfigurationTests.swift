import Foundation
import MartletAgent
import MartletKafka
import Testing

@Suite struct TelemetryConfigurationTests {
    private func parse(_ yaml: String, file: String = "") throws -> AgentConfiguration {
        try AgentConfiguration(yaml: yaml, readFile: { _ in file })
    }

    /// Reads a file and the environment.
    private func read(_ keys: String, _ environment: [String: String] = [:]) throws -> TelemetryConfiguration {
        var configuration = try parse("telemetry: {otlp: {\(keys)}}")
        configuration.readEnvironment(environment)
        return configuration.telemetry
    }

    private func problems(_ keys: String, _ environment: [String: String] = [:]) throws -> [String] {
        try read("endpoint: 'http://c:4318', " + keys, environment).validate()
    }

    @Test func nothingIsPushedUnlessAnEndpointIsSet() throws {
        #expect(try !read("").isOn && !AgentConfiguration().telemetry.isOn)
        #expect(try !read("", ["OTEL_SERVICE_NAME": "x", "OTEL_EXPORTER_OTLP_ENDPOINT": " "]).isOn)
        // The environment may be meant for other programs.
        #expect(try read("", ["OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"]).validate().isEmpty)
    }

    @Test func theFileHasEverySetting() throws {
        let configuration = try parse(
            """
            telemetry:
              otlp:
                endpoint: https://c.example:4318/
                headers: {x-team: blue, x-key: 0123}
                headersFile: /secret
                interval: 5m
                timeout: 3s
                caFile: ca.pem
                serviceName: tills
                attributes: {host.name: till-7, deployment.environment: shop}
            """, file: "Authorization=Bearer a=b\n\nx-key=two\n")
        let telemetry = configuration.telemetry
        #expect(telemetry.metricsURL == "https://c.example:4318/v1/metrics")
        #expect(telemetry.headers == ["x-team": "blue", "x-key": "two", "Authorization": "Bearer a=b"])
        #expect(telemetry.interval == .seconds(300) && telemetry.timeout == .seconds(3))
        #expect(telemetry.caFile == "ca.pem" && telemetry.serviceName == "tills")
        #expect(telemetry.attributes == ["host.name": "till-7", "deployment.environment": "shop"])
        #expect(configuration.secretFiles["telemetry.otlp.headersFile"] == "/secret")
        #expect(try read("endpoint: 'http://c/base/?a=b'").metricsURL == "http://c/base/v1/metrics?a=b")
        #expect(try read("endpoint: 'http://c', metricsEndpoint: 'http://d/x'").metricsURL == "http://d/x")
    }

    @Test func theEnvironmentOverridesTheFile() throws {
        let keys = "endpoint: 'http://file', interval: 5m, headers: {a: file}, attributes: {host.name: box, x: file}"
        let telemetry = try read(
            keys,
            [
                "OTEL_EXPORTER_OTLP_ENDPOINT": "http://environment:4318", "OTEL_METRIC_EXPORT_INTERVAL": "15000",
                "OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b, other=c", "OTEL_EXPORTER_OTLP_TIMEOUT": "2000",
                "OTEL_RESOURCE_ATTRIBUTES": "x=environment,service.name=first", "OTEL_SERVICE_NAME": "second",
                "OTEL_EXPORTER_OTLP_CERTIFICATE": "/ca.pem", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            ])
        #expect(telemetry.metricsURL == "http://environment:4318/v1/metrics")
        #expect(telemetry.interval == .seconds(15) && telemetry.timeout == .seconds(2))
        #expect(telemetry.headers == ["api-key": "a b", "other": "c"])
        #expect(telemetry.attributes == ["host.name": "box", "x": "environment"])
        #expect(telemetry.serviceName == "second" && telemetry.caFile == "/ca.pem")
    }

    @Test func theVariablesForMetricsOverrideTheGeneralOnes() throws {
        let telemetry = try read(
            "",
            [
                "OTEL_EXPORTER_OTLP_ENDPOINT": "http://all",
                "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://metrics/own",
                "OTEL_EXPORTER_OTLP_HEADERS": "a=all", "OTEL_EXPORTER_OTLP_METRICS_HEADERS": "a=metrics",
                "OTEL_EXPORTER_OTLP_TIMEOUT": "1000", "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT": "2000",
                "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/json",
            ])
        #expect(telemetry.metricsURL == "http://metrics/own")
        #expect(telemetry.headers == ["a": "metrics"] && telemetry.timeout == .seconds(2))
        #expect(telemetry.validate().isEmpty)
    }

    @Test(arguments: [["OTEL_SDK_DISABLED": "true"], ["OTEL_METRICS_EXPORTER": "none"]])
    func theEnvironmentCanSwitchItOff(environment: [String: String]) throws {
        #expect(try !read("endpoint: 'http://c'", environment).isOn)
    }

    @Test(arguments: ["collector:4318", "ftp://c", "http://", "http://c d", "c"])
    func validationRefusesAnInvalidURL(endpoint: String) throws {
        let problem = try #require(try read("endpoint: '\(endpoint)'").validate().first)
        #expect(problem.hasPrefix("telemetry.otlp.endpoint: must be a URL"))
    }

    @Test func validationNamesTheKeyAndTheLimit() throws {
        #expect(try problems("interval: 10ms") == ["telemetry.otlp.interval: must be from 1s to 1d"])
        #expect(try problems("timeout: 1h") == ["telemetry.otlp.timeout: must be from 100ms to 10m"])
        #expect(try problems("caFile: /no/such.pem").first?.contains("/no/such.pem can't be read") == true)
        #expect(try problems("headers: {'a b': c}").first?.contains("letters, digits and hyphens") == true)
        #expect(try problems("headers: {Content-Type: c}").first?.contains("can't be set") == true)
        #expect(try read("endpoint: 'http://me:pass@c'").validate().first?.contains("user or password") == true)
        var configuration = try parse("telemetry: {otlp: {endpoint: 'http://c', interval: 10ms}}")
        configuration.storePath = "a.sqlite"
        #expect(configuration.validate().contains("telemetry.otlp.interval: must be from 1s to 1d"))
    }

    @Test(arguments: [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "usually 4318"), ("OTEL_EXPORTER_OTLP_HEADERS", "token", "name=value"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "milliseconds"), ("OTEL_METRIC_EXPORT_INTERVAL", "-1", "milliseconds"),
        ("OTEL_RESOURCE_ATTRIBUTES", "a=%zz", "percent-encoded"),
    ])
    func validationNamesTheVariable(name: String, value: String, hint: String) throws {
        let found = try problems("", [name: value])
        #expect(found.count == 1 && found[0].hasPrefix("\(name): ") && found[0].contains(hint), "\(found)")
    }

    @Test func headersAreSecret() throws {
        let telemetry = try read("endpoint: 'https://c/?key=s3cret', headers: {a: \"s3cret\\r\\nHost: evil\"}")
        #expect(telemetry.validate().count == 1)
        var shown = "\(telemetry.validate()) \(telemetry.headers) \(telemetry.shownURL)"
        dump(telemetry.headers, to: &shown)
        #expect(!shown.contains("s3cret"))
        let file = #expect(throws: ConfigurationError.self) {
            try parse("telemetry: {otlp: {headersFile: /secret}}", file: "s3cret")
        }
        #expect(file?.problems == ["telemetry.otlp.headersFile: each line of /secret must be name=value"])
    }

    @Test func kafkaSyncRefusesToPush() {
        var configuration = AgentConfiguration()
        configuration.kafka.bootstrapServers = ["localhost:1"]
        configuration.telemetry.metricsURL = "http://c/v1/metrics"
        let error = #expect(throws: ConfigurationError.self) { try KafkaSync(configuration).start(store: "a.sqlite") }
        #expect(error?.problems.first?.hasPrefix("telemetry.otlp: works only in `martlet run`") == true)
    }
}
