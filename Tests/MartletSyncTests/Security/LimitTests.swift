import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// What is too large is kept aside, says why, and blocks nothing.
@Suite struct LimitTests {
    let lab: Lab

    init() throws { lab = try Lab() }

    private func insert(_ node: TestNode, _ key: String, bytes: Int) throws {
        try node.write("INSERT INTO setting VALUES ('\(key)', hex(zeroblob(\(bytes / 2))))")
        try node.publish()
    }

    private func security(_ rules: (inout SecurityConfiguration) -> Void) -> MessageSecurity {
        MessageSecurity(keys: nil, rules)
    }

    @Test func aMessageThatIsTooLargeIsKeptAsideUntilTheLimitIsHigher() throws {
        let a = try lab.node("a")
        let b = try lab.node("b", security { $0.maxMessageBytes = 10_000 }) { $0.maxMessageBytes = 4000 }
        try insert(a, "large", bytes: 12_000)
        try insert(a, "small", bytes: 100)
        try b.consume()
        #expect(try b.keys() == ["small"])
        #expect(try b.reasons().count == 1 && b.reasons()[0].contains("security.limits.maxMessageBytes"))
        #expect(try b.engine.retryQuarantined().kept == 1)
        try b.restart(security: MessageSecurity())
        #expect(try b.engine.retryQuarantined().applied == 1)
        #expect(try b.keys() == ["large", "small"])
        #expect(try b.sequences() == ["2"])
    }

    @Test(arguments: [true, false]) func aTransactionThatIsTooLargeIsNotCollected(saysItsSize: Bool) throws {
        let a = try lab.node("a") { $0.maxMessageBytes = 4000 }
        let rules = security {
            $0.maxMessageBytes = 10_000
            $0.maxTransactionBytes = 10_000
        }
        let b = try lab.node("b", rules) { $0.maxMessageBytes = 4000 }
        try insert(a, "large", bytes: 20_000)
        try insert(a, "small", bytes: 100)
        var all = try messages(lab.bus)
        if !saysItsSize { for index in all.indices { all[index].set("martlet-size", nil) } }
        try b.deliver(all)
        #expect(try b.keys() == ["small"])
        let stored = try b.rows("SELECT ifnull(sum(length(bytes)), 0) FROM _martlet_chunks")
        #expect(try #require(Int(stored[0])) <= (saysItsSize ? 0 : 10_000))
        #expect(try b.reasons().allSatisfy { $0.contains("security.limits.maxTransactionBytes") })
        #expect(try b.reasons().count == (saysItsSize ? 6 : 3))
        try b.restart(security: MessageSecurity())
        _ = try b.engine.retryQuarantined()
        #expect(try b.keys() == ["large", "small"])
        #expect(try b.store.quarantined() == [])
    }

    @Test func aRowThatIsTooLargeIsKeptAsideWithItsTransaction() throws {
        let a = try lab.node("a")
        let b = try lab.node("b", security { $0.maxRowBytes = 5000 })
        try insert(a, "large", bytes: 6000)
        // As many bytes in more rows.
        try a.write("INSERT INTO setting SELECT 's' || value, hex(zeroblob(1000)) FROM json_each('[1,2,3]')")
        try a.publish()
        try b.consume()
        #expect(try b.keys() == ["s1", "s2", "s3"])
        #expect(try b.reasons().count == 1 && b.reasons()[0].contains("security.limits.maxRowBytes"))
        #expect(try b.sequences() == ["2", "gap|1|1"])
    }

    @Test func chunksWithNothingInThemAreNotCollected() throws {
        let a = try lab.node("a") { $0.maxMessageBytes = 4000 }
        let b = try lab.node("b")
        try insert(a, "large", bytes: 20_000)
        var empty = try messages(lab.bus)[0]
        empty.payload = []
        try b.deliver([empty.summed()])
        #expect(try b.rows("SELECT count(*) FROM _martlet_chunks") == ["0"])
        #expect(try b.reasons().count == 1 && b.reasons()[0].contains("nothing in it"))
        try b.consume()
        #expect(try b.keys() == ["large"])
    }

    @Test func aNodeThatWouldNotTakeItsOwnMessagesDoesNotStart() throws {
        #expect(throws: StoreError.self) { try lab.node("a", security { $0.maxMessageBytes = 10_000 }) }
        let b = try lab.node("b")
        let node = b.engine.node.uuid
        let key = NodeSigningKey()
        #expect(throws: StoreError.self) { try b.restart(security: security { $0.origins = [node: [key.publicKey]] }) }
        try b.restart(security: MessageSecurity(keys: nil, signingKey: key) { $0.origins = [node: [key.publicKey]] })
    }

    @Test func limitsThatMakeNoSenseAreRefused() throws {
        var rules = SecurityConfiguration()
        rules.maxMessageBytes = 100
        rules.maxTransactionBytes = 10
        rules.maxRowBytes = 0
        rules.origins = [:]
        #expect(rules.validate().count == 4)
        #expect(throws: StoreError.self) { try lab.node("a", MessageSecurity(rules)) }
    }
}
