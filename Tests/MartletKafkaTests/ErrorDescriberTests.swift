import Logging
import Testing

@testable import MartletKafka

/// The error message for a connection that the broker closed.
@Suite struct ErrorDescriberTests {
    private func describer(logsIn: Bool) -> RDErrorDescriber {
        RDErrorDescriber(topic: "t", bootstrapServers: "b", logsIn: logsIn)
    }

    /// librdkafka reports a close that it notices while reading. For one that it notices while sending, it only has the
    /// system's message.
    @Test(arguments: [
        "b:9092/bootstrap: Send failed: Broken pipe (after 0ms in state UP)",
        "b:9092/bootstrap: Receive failed: Connection reset by peer (after 1ms in state APIVERSION_QUERY)",
        "b:9092/bootstrap: Disconnected: connection closed by peer: receive 0 after POLLIN "
            + "(after 4ms in state APIVERSION_QUERY)",
    ])
    func aConnectionClosedByTheBrokerHintsAtAMissingLogin(reason: String) {
        let said = describer(logsIn: false).explained(reason)
        #expect(said.hasPrefix(reason) && said.contains("broker might require SASL authentication"))
        #expect(said.contains("connecting to a SSL listener"))
        #expect(describer(logsIn: true).explained(reason) == reason)
    }

    @Test(arguments: ["Connect to ipv4#127.0.0.1:1 failed: Connection refused (after 0ms in state CONNECT)", ""])
    func otherReasonsStayUnchanged(reason: String) {
        #expect(describer(logsIn: false).explained(reason) == reason)
    }

    /// A newer librdkafka reports the close only in its log.
    @Test func theContextReadsAHangUpFromTheLog() {
        let context = RDContext(
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, describe: describer(logsIn: false),
            metrics: nil)
        let closed = "Disconnected: connection closed by peer: receive 0 after POLLIN"
        context.log(level: 6, facility: "FAIL", message: "\(closed) (after 90000ms in state UP)")
        #expect(context.takeHangUp() == nil)
        for early in ["\(closed) (after 4ms in state APIVERSION_QUERY)", "\(closed) (after 12ms in state UP)"] {
            context.log(level: 6, facility: "FAIL", message: early)
            #expect(context.takeHangUp() == early)
        }
        #expect(context.takeHangUp() == nil)
    }

    @Test func thePropertiesDecideWhetherAClientLogsIn() {
        var configuration = KafkaConfiguration(bootstrapServers: ["b:1"])
        #expect(!configuration.logsIn)
        configuration.securityProtocol = .saslSSL
        #expect(configuration.logsIn)
        configuration.properties["security.protocol"] = "SSL"
        #expect(!configuration.logsIn)
    }
}
