import MartletAgent
import MartletKafka
import MartletTelemetry
import Testing

@Suite struct TelemetryDoctorTests {
    @Test func theDoctorAsksTheCollector() throws {
        #expect(TelemetryDoctor.examine(TelemetryConfiguration()).isEmpty)
        let collector = try CollectorStub([.init()])
        var configuration = collector.configuration
        configuration.interval = .seconds(60)
        configuration.headers = ["api-key": "x"]
        let findings = TelemetryDoctor.examine(configuration)
        #expect(findings.map(\.level) == [.ok])
        #expect(findings.first?.message.hasSuffix("/v1/metrics accepts metrics") == true)
        #expect(collector.requests.map(\.body) == [#"{"resourceMetrics":[]}"#])
        #expect(collector.requests.first?.headers["api-key"] == "x")
    }

    @Test func theDoctorSaysWhyNothingArrives() throws {
        var configuration = try CollectorStub([.init(status: 404)]).configuration
        configuration.interval = .seconds(60)
        // The server is gone.
        let gone = try #require(TelemetryDoctor.examine(configuration).first)
        #expect(gone.level == .problem && gone.message.contains("can't be reached"))
        let collector = try CollectorStub([.init(status: 404)])
        configuration.metricsURL = collector.configuration.metricsURL
        let refused = try #require(TelemetryDoctor.examine(configuration).first)
        #expect(refused.level == .problem && refused.message.contains("telemetry.otlp.metricsEndpoint"))
        configuration.interval = .zero
        let invalid = try #require(TelemetryDoctor.examine(configuration).first)
        #expect(invalid.level == .problem && invalid.message.contains("telemetry.otlp.interval"))
        #expect(collector.requests.count == 1)
    }

    @Test func theDoctorWarnsOfHeadersInClearText() throws {
        var configuration = TelemetryConfiguration()
        configuration.metricsURL = "http://192.0.2.1:4318/v1/metrics"
        configuration.timeout = .milliseconds(100)
        configuration.headers = ["api-key": "x"]
        let warning = try #require(TelemetryDoctor.examine(configuration).first)
        #expect(warning.level == .warning && warning.message.contains("can read the headers"))
        configuration.headers = [:]
        #expect(!TelemetryDoctor.examine(configuration).contains { $0.level == .warning })
    }
}
