import Foundation
import MartletAgent
import MartletSync
import Testing

@Suite struct SecurityConfigurationTests {
    private func parse(_ yaml: String) throws -> AgentSecurity {
        try AgentConfiguration(yaml: yaml, readFile: { _ in "" }).security
    }

    private func problems(_ yaml: String) -> [String] {
        MartletAgentTests.problems { _ = try parse(yaml) }
    }

    @Test func parsingReadsSecurityValues() throws {
        let (a, b) = (UUID(), UUID())
        let (first, second) = (NodeSigningKey().publicKey, NodeSigningKey().publicKey)
        let security = try parse(
            """
            security:
              keyRingFile: /etc/martlet/keys
              signingKeyFile: /etc/martlet/node.key
              acceptPlaintext: true
              origins:
                \(a): \(first), \(second)
                \(b): any
              limits: {maxMessageBytes: 20000, maxTransactionBytes: 30000, maxRowBytes: 40000,
                maxQuarantineBytes: 50000}
            """)
        #expect(security.keyRingFile == "/etc/martlet/keys" && security.signingKeyFile == "/etc/martlet/node.key")
        #expect(security.rules.acceptPlaintext == .accept)
        #expect(security.rules.origins == [a: [first, second], b: []])
        #expect(security.rules.maxMessageBytes == 20_000 && security.rules.maxTransactionBytes == 30_000)
        #expect(security.rules.maxRowBytes == 40_000 && security.rules.maxQuarantineBytes == 50_000)
        #expect(security.validate() == [])
    }

    @Test(arguments: ["2026-01-31T12:00:00Z", "'2026-01-31T12:00:00Z'"]) func plaintextMayBeAcceptedUpToATime(
        text: String
    )
        throws
    {
        let date = try Date("2026-01-31T12:00:00Z", strategy: .iso8601)
        #expect(try parse("security: {acceptPlaintext: \(text)}").rules.acceptPlaintext == .before(date))
    }

    @Test func parsingReportsMistakes() throws {
        let key = NodeSigningKey()
        let found = problems(
            """
            security:
              acceptPlaintext: sometimes
              origins:
                laptop: any
                \(UUID()): \(key.secretText)
                \(UUID()): any, \(key.publicKey)
            """)
        #expect(found.count == 4)
        #expect(found.contains { $0.contains("acceptPlaintext: sometimes must be") })
        #expect(found.contains { $0.contains("laptop is not a node's UUID") })
        // The user entered the secret half of the key.
        #expect(!found.contains { $0.contains(key.secretText) })
        #expect(try parse("security: {acceptPlaintext: true}").validate().count == 1)
        #expect(
            try parse("security: {limits: {maxRowBytes: 1}}").validate() == [
                "limits.maxRowBytes: 1 must be at least 1000"
            ])
    }

    /// The first chunk of a transaction would end the process.
    @Test func aLimitWhoseMultiplesAreNoNumbersIsRefused() throws {
        #expect(
            try parse("security: {limits: {maxTransactionBytes: \(Int.max)}}").validate() == [
                "limits.maxTransactionBytes: \(Int.max) must be at most 1099511627776"
            ])
        #expect(try parse("security: {limits: {maxTransactionBytes: 1099511627776}}").validate() == [])
    }
}
