import Foundation
import MartletAgent
import MartletKafka
import Testing

@Suite struct HTTPConfigurationTests {
    private func problems(_ listen: String?, token: Secret? = nil) -> [String] {
        var configuration = HTTPConfiguration()
        configuration.listen = listen
        configuration.token = token
        return configuration.validate()
    }

    private func parse(_ yaml: String, file: String = "0123456789abcdef\n") throws -> AgentConfiguration {
        try AgentConfiguration(yaml: yaml, readFile: { _ in file })
    }

    @Test(arguments: ["127.0.0.1:9464", "localhost:0", "127.9.9.9:80", "[::1]:9464", "[::ffff:127.0.0.1]:1"])
    func theLoopbackInterfaceNeedsNoToken(listen: String) throws {
        #expect(problems(listen).isEmpty)
        #expect(try #require(ListenAddress(listen)).isLoopback)
    }

    @Test(arguments: ["0.0.0.0:9464", "192.168.1.2:9464", "[::]:9464", "[fe80::1]:1", "[::ffff:10.0.0.1]:1"])
    func anAddressThatOtherMachinesReachNeedsAToken(listen: String) {
        let found = problems(listen)
        #expect(found.count == 1)
        // The message says what to do.
        #expect(
            found.first?.contains("http.tokenFile") == true && found.first?.contains("openssl rand -hex 32") == true)
        #expect(problems(listen, token: "0123456789abcdef").isEmpty)
    }

    @Test(arguments: [
        "9464", ":9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "example.com:9464", "::1:9464", "[127.0.0.1]:1",
        "",
    ])
    func validationRefusesAnInvalidAddress(listen: String) {
        #expect(problems(listen).first?.hasPrefix("listen: \(listen) must be HOST:PORT") == true)
    }

    @Test func validationRefusesAShortOrNonASCIIToken() {
        #expect(problems(nil, token: "0123456789abcde").first?.contains("shorter than 16") == true)
        #expect(problems(nil, token: "0123456789 abcdef").first?.contains("visible ASCII") == true)
        #expect(problems(nil, token: "0123456789abcdeé").first?.contains("visible ASCII") == true)
    }

    @Test func theEnvironmentOverridesTheTokenFile() throws {
        var configuration = try parse("http: {listen: '0.0.0.0:9464', tokenFile: /secret}")
        #expect(configuration.http.token == "0123456789abcdef")
        configuration.readEnvironment([AgentConfiguration.httpTokenVariable: "fedcba9876543210"])
        #expect(configuration.http.token == "fedcba9876543210")
        configuration.readEnvironment([AgentConfiguration.httpTokenVariable: ""])
        #expect(configuration.http.token == "fedcba9876543210")
        var dumped = "\(configuration)"
        dump(configuration, to: &dumped)
        #expect(!dumped.contains("fedcba9876543210"))
    }

    @Test func anEmptyOrMissingTokenFileIsReported() {
        let empty = #expect(throws: ConfigurationError.self) { try parse("http: {tokenFile: /secret}", file: "\n") }
        #expect(empty?.problems.first?.hasPrefix("http.tokenFile: /secret is empty") == true)
        let missing = #expect(throws: ConfigurationError.self) {
            try AgentConfiguration(yaml: "http: {tokenFile: /secret}") { _ in throw CocoaError(.fileNoSuchFile) }
        }
        #expect(missing?.problems == ["http.tokenFile: /secret can't be read"])
    }

    @Test func theReadyLagIsADurationOrAMessageCount() throws {
        #expect(try parse("http: {readyLag: 5m}").http.readyLag == .time(.seconds(300)))
        #expect(try parse("http: {readyLag: 100}").http.readyLag == .messages(100))
        #expect(try parse("").http.readyLag == .time(.seconds(30)))
        let error = #expect(throws: ConfigurationError.self) { try parse("http: {readyLag: soon}") }
        #expect(error?.problems.first?.hasPrefix("http.readyLag: soon is neither") == true)
        #expect(try parse("http: {readyLag: 0s}").http.validate() == ["readyLag: must be above 0"])
        #expect(try parse("http: {readyLag: -1}").http.validate() == ["readyLag: must not be negative"])
    }

    @Test func kafkaSyncRefusesAnHTTPListenAddress() {
        var configuration = AgentConfiguration()
        configuration.kafka.bootstrapServers = ["localhost:1"]
        configuration.http.listen = "127.0.0.1:0"
        let error = #expect(throws: ConfigurationError.self) { try KafkaSync(configuration).start(store: "a.sqlite") }
        #expect(error?.problems.first?.hasPrefix("http.listen: works only in `martlet run`") == true)
    }
}
