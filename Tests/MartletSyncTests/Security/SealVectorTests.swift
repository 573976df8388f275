import Foundation
import MartletStore
import MartletSync
import Testing

/// The format of sealed and signed messages, made by another program from docs/wire-format.md: it must not change.
@Suite struct SealVectorTests {
    private let node = "01234567-89AB-CDEF-0123-456789ABCDEF"
    private let message: IncomingMessage
    private let security: MessageSecurity

    init() throws {
        let payload = try #require(
            Data(base64Encoded: "ZGVmZ2hpamtsbW5vh4M44XI/rsA7haGNZlUNpqGjbtbg2nLCOQY5cA=="))
        // The headers are not in the order in which they are bound.
        message = IncomingMessage(
            position: PartitionPosition(partition: 0, offset: 0), key: Array(node.utf8),
            headers: [
                MessageHeader("martlet-size", "9"), MessageHeader("martlet-chunk", "0/2"),
                MessageHeader("martlet-crc32", "5e176f06"), MessageHeader("martlet-format", "protobuf"),
                MessageHeader("traceparent", "of somebody else"), MessageHeader("martlet-origin", node),
                MessageHeader("martlet-sequence", "42"), MessageHeader("martlet-key", "2026-01"),
                MessageHeader(
                    "martlet-signature",
                    "N6xoXn7/RcpoGHJM5SWLrEWH1Lay06umeQ6Xcqn9CMogEHCcY7l788RSvlZ/hYVmQHppr0EGfFVEKn+fDv3BDg=="),
            ], payload: Array(payload), timestamp: 0, isBrokerTimestamp: false)
        var rules = SecurityConfiguration()
        let key = try #require(NodePublicKey("ed25519:Kay64UG8yvCyLhqU000LxzYeUm0L/hLIl5S8kyKWbdc="))
        rules.origins = [try #require(UUID(uuidString: node)): [key]]
        security = MessageSecurity(
            rules,
            keys: FixedKeys(try KeyRing(parsing: "2026-01 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8= current")))
    }

    @Test func aMessageThatAnotherProgramSealedAndSignedIsOpened() throws {
        let opened = try MessageGuard(security).open(message, topic: "vectors", node: .none)
        #expect(String(decoding: opened.payload, as: UTF8.self) == "what is sent")
        #expect(try WireEnvelope(opened).chunk?.count == 2)
        #expect(opened.header("martlet-key") == nil && opened.header("martlet-signature") == nil)
    }

    @Test func aMessageOfAnotherTopicIsRefused() throws {
        let messageGuard = try MessageGuard(security)
        #expect(throws: WireError.self) { try messageGuard.open(message, topic: "vector", node: .none) }
    }
}
