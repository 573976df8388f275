import MartletKafka
import MartletSync
import Testing

@Suite struct KafkaConfigurationTests {
    @Test func defaultsAreValid() {
        #expect(KafkaConfiguration().validate() == [])
    }

    @Test(arguments: [
        "enable.idempotence", "acks", "request.required.acks", "enable.auto.commit", "auto.offset.reset",
        "enable.auto.offset.store", "enable.gapless.guarantee", "transactional.id", "delivery.report.only.error",
        "enable.partition.eof", "partitioner", "queuing.strategy", "enabled_events",
    ])
    func validationRefusesPropertiesThatTheGuaranteesDependOn(_ name: String) {
        var configuration = KafkaConfiguration()
        configuration.properties[name] = "1"
        #expect(configuration.validate().map(\.field) == ["properties.\(name)"])
    }

    @Test func validationRefusesUnknownAndMalformedProperties() {
        var configuration = KafkaConfiguration()
        configuration.properties = ["lingerr.ms": "1", "socket.timeout.ms": "soon", "fetch.min.bytes": "10"]
        let problems = configuration.validate()
        #expect(problems.map(\.field) == ["properties.lingerr.ms", "properties.socket.timeout.ms"])
        #expect(problems[1].value == "soon")
    }

    /// Its value may be a secret.
    @Test func theValueOfAMisspelledPropertyIsNotPrinted() {
        var configuration = KafkaConfiguration()
        configuration.properties = ["sasl.passwrod": "hunter2"]
        #expect(!"\(configuration.validate())".contains("hunter2"))
        #expect(configuration.validate().map(\.field) == ["properties.sasl.passwrod"])
        #expect(throws: BusError.self) { try KafkaBus(configuration) }
        do { _ = try KafkaBus(configuration) } catch { #expect(!"\(error)".contains("hunter2")) }
    }

    @Test func validationReportsEveryProblemWithItsField() {
        var configuration = KafkaConfiguration(bootstrapServers: [""], topic: "..", node: "")
        configuration.linger = .seconds(-1)
        configuration.messageMaxBytes = 1
        configuration.producerQueueBytes = 0
        configuration.consumerQueueBytes = .max
        configuration.fetchWaitMax = .seconds(301)
        configuration.idleFetchWaitMax = .seconds(300)
        configuration.deliveryTimeout = .zero
        configuration.statisticsInterval = .seconds(-1)
        configuration.securityProtocol = .saslSSL
        configuration.tls.certificateLocation = "cert.pem"
        let fields = Set(configuration.validate().map(\.field))
        #expect(
            fields == [
                "bootstrapServers", "topic", "node", "linger", "messageMaxBytes", "producerQueueBytes",
                "consumerQueueBytes", "fetchWaitMax", "idleFetchWaitMax", "deliveryTimeout", "statisticsInterval",
                "credentials",
                "tls.keyLocation",
            ])
    }

    @Test func credentialsWithoutSASLAreAProblem() {
        var configuration = KafkaConfiguration()
        configuration.credentials = KafkaCredentials(username: "u", password: "p")
        #expect(configuration.validate().map(\.field) == ["securityProtocol"])
    }

    /// The invalid fields of a configuration that logs in by SASL.
    private func problems(_ credentials: KafkaCredentials, _ properties: [String: String] = [:]) -> [String] {
        var configuration = KafkaConfiguration()
        configuration.securityProtocol = .saslSSL
        configuration.credentials = credentials
        configuration.properties = properties
        return configuration.validate().map(\.field)
    }

    @Test func aTokenFileReplacesUserAndPassword() {
        let name = "enable.sasl.oauthbearer.unsecure.jwt"
        let ownTokens = [name: "true"]
        #expect(problems(KafkaCredentials(tokenFile: "/token")) == [])
        #expect(problems(KafkaCredentials(tokenFile: "")) == ["credentials"])
        #expect(problems(KafkaCredentials(tokenFile: "/token"), ownTokens) == ["properties.\(name)"])
        var wrongMechanism = KafkaCredentials(tokenFile: "/token")
        wrongMechanism.mechanism = "PLAIN"
        #expect(problems(wrongMechanism) == ["credentials"])
        let nothing = KafkaCredentials(mechanism: "OAUTHBEARER", username: "u", password: "")
        #expect(problems(nothing) == ["credentials"])
        #expect(problems(nothing, ownTokens) == [])
        #expect(problems(KafkaCredentials(username: "u", password: "")) == ["credentials"])
    }

    @Test func aPrintedConfigurationHidesSecrets() {
        var configuration = KafkaConfiguration()
        configuration.securityProtocol = .saslSSL
        configuration.credentials = KafkaCredentials(username: "u", password: "hush")
        configuration.tls.keyPassword = "hush"
        configuration.properties = ["ssl.keystore.password": "hush", "ssl.key.pem": "hush"]
        var dumped = ""
        dump(configuration, to: &dumped)
        dump(configuration.credentials, to: &dumped)
        let printed = "\(configuration) \(String(reflecting: configuration)) \(dumped) \(configuration.validate())"
        #expect(!printed.contains("hush"))
        #expect(printed.contains("***"))
    }
}
