import Foundation
import MartletAgent
import MartletKafka
import MartletTestSupport
import Testing

/// Findings on the connection to the brokers that need no broker.
@Suite struct ConnectionDoctorTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func file(_ name: String, _ text: String = "0123456789abcdef\n", mode: Int = 0o600) throws -> String {
        let path = folder.path(name)
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        return path
    }

    private func parse(_ yaml: String) throws -> AgentConfiguration {
        try AgentConfiguration(yaml: yaml) { try String(contentsOfFile: $0, encoding: .utf8) }
    }

    private func findings(
        _ servers: [String], _ security: KafkaSecurityProtocol, mechanism: String? = nil,
        _ properties: [String: String] = [:]
    ) -> [String] {
        var configuration = AgentConfiguration()
        configuration.kafka.bootstrapServers = servers
        configuration.kafka.securityProtocol = security
        configuration.kafka.credentials = mechanism.map {
            KafkaCredentials(mechanism: $0, username: "u", password: "hush")
        }
        configuration.kafka.properties = properties
        let found = ConnectionDoctor.examine(configuration)
        #expect(found.allSatisfy { $0.level == .warning && $0.remedy != nil && !"\($0)".contains("hush") })
        return found.map(\.check)
    }

    @Test func valuesWithWhichTheAgentDoesNotStartAreFound() throws {
        let wrong = try parse(
            """
            kafka: {bootstrapServers: ["localhost:1"], securityProtocol: ssl, tls: {caFile: \(folder.path("none.pem"))}}
            http: {listen: "0.0.0.0:9464"}
            sync: {maxMessageBytes: 1}
            telemetry: {otlp: {endpoint: nowhere}}
            """)
        let found = ConfigurationDoctor.examine(wrong, store: "s")
        #expect(found.map { $0.message.prefix { $0 != ":" } } == ["sync.maxMessageBytes", "http.listen"])
        #expect(found.allSatisfy { $0.level == .problem && $0.check == "configuration" })
        #expect(ConfigurationDoctor.examine(try parse("kafka: {bootstrapServers: [\"b:1\"]}"), store: "s") == [])
    }

    @Test(arguments: [
        "localhost:9092", "LOCALHOST", "127.0.0.1:9092", "127.1.2.3", "[::1]:9092", "PLAINTEXT://localhost:1",
    ])
    func plaintextOnTheLoopbackInterfaceIsAccepted(server: String) {
        #expect(findings([server], .plaintext) == [])
        #expect(findings([server, "broker.example:9092"], .plaintext) == ["connection"])
    }

    @Test(arguments: ["broker.example:9092", "10.0.0.1:9092", "localhost.example:9092", "[fe80::1]:9092", "broker"])
    func plaintextToOtherMachinesCausesAWarning(server: String) {
        #expect(findings([server], .plaintext) == ["connection"])
        #expect(findings([server], .saslPlaintext, mechanism: "SCRAM-SHA-512") == ["connection"])
        #expect(findings([server], .ssl) == [])
        #expect(findings([server], .saslSSL, mechanism: "PLAIN") == [])
    }

    @Test func credentialsSentInPlaintextCauseAWarning() {
        #expect(findings(["localhost:1"], .saslPlaintext, mechanism: "PLAIN") == ["login"])
        #expect(findings(["localhost:1"], .saslPlaintext, mechanism: "OAUTHBEARER") == ["login"])
        #expect(findings(["localhost:1"], .saslPlaintext, mechanism: "SCRAM-SHA-256") == [])
        #expect(findings(["b:1"], .saslPlaintext, mechanism: "PLAIN") == ["connection", "login"])
    }

    @Test func rawPropertiesOverrideTypedSettings() {
        #expect(findings(["b:1"], .plaintext, ["security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"]) == [])
        #expect(findings(["b:1"], .ssl, ["security.protocol": "plaintext"]) == ["connection"])
        #expect(findings(["b:1"], .plaintext, ["bootstrap.servers": "localhost:1,127.0.0.1:2"]) == [])
    }

    @Test func secretFilesOpenToEveryUserCauseAWarning() throws {
        let password = try file("password", mode: 0o644)
        let token = try file("http", mode: 0o606)
        let yaml = """
            kafka: {securityProtocol: sasl_ssl, sasl: {username: me, passwordFile: \(password)}}
            http: {tokenFile: \(token)}
            """
        let found = ConnectionDoctor.examine(try parse(yaml))
        #expect(
            found.map(\.message) == [
                "http.tokenFile: every user of this machine can write \(token) (mode 0606)",
                "kafka.sasl.passwordFile: every user of this machine can read \(password) (mode 0644)",
            ])
        #expect(found.allSatisfy { $0.level == .warning && $0.remedy?.contains("chmod o-rwx") == true })
        #expect(!"\(found)".contains("0123456789abcdef"))
        for path in [password, token] {
            try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
        }
        #expect(ConnectionDoctor.examine(try parse(yaml)) == [])
    }

    /// The private key that authenticates a node: the client reads the file itself.
    @Test(arguments: [
        ("securityProtocol: ssl, tls: {certificateFile: /c.pem, keyFile: FILE}", "kafka.tls.keyFile"),
        ("securityProtocol: ssl, properties: {ssl.key.location: FILE}", "kafka.properties.ssl.key.location"),
    ])
    func keyFilesThatTheClientReadsAreExaminedToo(kafka: String, key: String) throws {
        let path = try file("secret", mode: 0o604)
        let configuration = try parse("kafka: {\(kafka.replacing("FILE", with: path))}")
        #expect(
            ConnectionDoctor.examine(configuration).map(\.message) == [
                "\(key): every user of this machine can read \(path) (mode 0604)"
            ])
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        #expect(ConnectionDoctor.examine(configuration) == [])
    }

    @Test func aTokenFileIsLeftToTheClientAndExcludesAPassword() throws {
        let configuration = try parse(
            "kafka: {bootstrapServers: 'b:9093', securityProtocol: sasl_ssl, sasl: {tokenFile: /token, username: me}}")
        var expected = KafkaCredentials(tokenFile: "/token")
        expected.username = "me"
        #expect(configuration.kafka.credentials == expected)
        #expect(configuration.kafka.credentials?.mechanism == "OAUTHBEARER")
        #expect(configuration.kafka.validate() == [])
        let both = problems { _ = try parse("kafka: {sasl: {tokenFile: /token, password: hush}}") }
        #expect(both == ["kafka.sasl: tokenFile replaces the password; keep one of the two"])
    }

    @Test func unreadableTLSFilesAreReportedBeforeConnecting() throws {
        var configuration = AgentConfiguration()
        configuration.storePath = "a.sqlite"
        configuration.kafka.bootstrapServers = ["broker.example:9093"]
        configuration.kafka.securityProtocol = .ssl
        let (authority, key) = (try file("authority.pem"), try file("node.key"))
        configuration.kafka.tls = KafkaTLS(
            caLocation: authority, certificateLocation: folder.url.path, keyLocation: folder.path("none.key"))
        let expected = [
            "kafka.tls.certificateFile: \(folder.url.path) can't be read: it is a directory",
            "kafka.tls.keyFile: \(folder.path("none.key")) can't be read: No such file or directory",
        ]
        #expect(configuration.validate() == expected)
        let found = BrokerDoctor.examine(configuration, log: quietLog)
        #expect(found.map(\.message) == expected && found.allSatisfy { $0.check == "broker" && $0.level == .problem })
        configuration.kafka.tls = KafkaTLS(
            caLocation: folder.url.path, certificateLocation: authority, keyLocation: key)
        #expect(configuration.validate() == [])
        configuration.kafka.tls.caLocation = "/no/authority.pem"
        let missing = ["kafka.tls.caFile: /no/authority.pem can't be read: No such file or directory"]
        #expect(configuration.validate() == missing)
    }

    @Test(.enabled(if: geteuid() != 0, "root can read everything")) func anUnreadableKeyFileIsReported() throws {
        var configuration = AgentConfiguration()
        let (certificate, key) = (try file("node.pem"), try file("node.key", mode: 0))
        configuration.kafka.tls = KafkaTLS(certificateLocation: certificate, keyLocation: key)
        #expect(configuration.unreadableFiles == ["kafka.tls.keyFile: \(key) can't be read: Permission denied"])
    }

    @Test func anUnusableTokenFileIsReportedBeforeConnecting() throws {
        var configuration = AgentConfiguration()
        configuration.kafka.bootstrapServers = ["127.0.0.1:1"]
        configuration.kafka.securityProtocol = .saslPlaintext
        configuration.kafka.credentials = KafkaCredentials(tokenFile: try file("token", "hush", mode: 0o644))
        let shown = BrokerDoctor.examine(configuration, log: quietLog)
        #expect(shown.map(\.check) == ["token"] && shown[0].level == .problem)
        #expect(shown[0].message.contains("every user") && !"\(shown)".contains("hush"))
        configuration.kafka.credentials?.tokenFile = "/no/token"
        let missing = BrokerDoctor.examine(configuration, log: quietLog)
        #expect(missing.map(\.message) == ["kafka.sasl.tokenFile: /no/token can't be read: No such file or directory"])
    }
}
