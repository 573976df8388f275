import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Messages that can't be decoded block nothing, and are kept.
@Suite struct PoisonTests {
    let lab: Lab
    let a: TestNode
    let b: TestNode

    init() throws {
        lab = try Lab()
        a = try lab.node("a") { $0.encoding = .json }
        b = try lab.node("b")
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try a.write("INSERT INTO setting VALUES ('l', 2)")
        try a.publish()
    }

    /// The first message is broken, and the second is valid. Then the first arrives again, intact.
    private func expectQuarantine(_ change: (inout IncomingMessage) -> Void) throws {
        let messages = try lab.messages()
        var broken = messages[0]
        change(&broken)
        #expect(broken != messages[0])
        let report = try b.receive([broken, messages[1]])
        #expect(report.quarantined == 1)
        #expect(report.applied == 1)
        #expect(try b.rows("SELECT key FROM setting") == ["l"])
        #expect(try b.receive([messages[0]]).applied == 1)
        #expect(try b.rows("SELECT key FROM setting ORDER BY key") == ["k", "l"])
        #expect(try b.gaps() == [])
        #expect(try b.store.quarantined().count == 1)
    }

    @Test(arguments: [
        [], [0x0a], Array("{\"format\":".utf8), [UInt8](repeating: 0xff, count: 300), Array("\0\0\0".utf8),
    ])
    func p11AGarbagePayloadIsQuarantined(payload: [UInt8]) throws {
        try expectQuarantine { $0.payload = payload }
    }

    @Test(
        arguments: ["martlet-origin", "martlet-sequence", "martlet-chunk"],
        ["", "x", "-1", "1/1", "99999999999999999999"])
    func p11BadHeadersAreQuarantined(name: String, value: String) throws {
        try expectQuarantine {
            $0.headers = $0.headers.filter { $0.name != name } + [MessageHeader(name, value)]
        }
    }

    @Test func p11AnUnknownFormatVersionIsQuarantined() throws {
        try expectQuarantine { $0 = $0.replacing("\"format\":1", with: "\"format\":2") }
    }

    @Test func p11APayloadOfAnotherTransactionIsQuarantined() throws {
        try expectQuarantine { $0 = $0.replacing("\"sequence\":\"1\"", with: "\"sequence\":\"7\"") }
    }

    @Test func p11AnUnknownKindOfChangeIsQuarantined() throws {
        try expectQuarantine { $0 = $0.replacing("CHANGE_KIND_INSERT", with: "CHANGE_KIND_UNSPECIFIED") }
    }

    @Test func p11AnInvalidPendingChangeDoesNotBlockTheRest() throws {
        let message = try lab.messages()[0]
            .replacing("\"entity\":\"setting\"", with: "\"entity\":\"later\"")
            .replacing("CHANGE_KIND_INSERT", with: "CHANGE_KIND_UNSPECIFIED")
        try b.receive([message])
        #expect(try b.pendingMessages().map(\.reason) == [.unknownSchema])
        try b.write("CREATE TABLE later(key TEXT PRIMARY KEY NOT NULL, value)")
        _ = try b.store.attach()
        try b.consume()
        #expect(try b.pendingMessages() == [])
        #expect(try b.store.quarantined().count == 1)
        #expect(try b.rows("SELECT key FROM setting ORDER BY key") == ["l"])
    }

    @Test func aTopicWithPoisonMessagesIsReadToItsEnd() throws {
        let messages = try lab.messages()
        try lab.rewrite { _ in
            var garbage = messages[0]
            garbage.payload = [1, 2, 3]
            garbage.headers = []
            return [garbage, messages[0], garbage, messages[1]]
        }
        let report = try b.consume()
        #expect(report.quarantined == 2 && report.applied == 2)
        try b.restart()
        #expect(try b.consume() == ApplyReport())
    }
}
