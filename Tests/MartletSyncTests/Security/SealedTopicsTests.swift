import Foundation
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Snapshots and checks that only nodes with the key can read, and only nodes with the key can make.
@Suite struct SealedTopicsTests {
    let lab: SnapshotLab
    let checks: InMemoryBus
    let keys: TestKeys

    init() throws {
        lab = try SnapshotLab(partitions: 1)
        checks = InMemoryBus(topic: AntiEntropy.name(of: "t"), partitionCount: 1)
        keys = try TestKeys("k1")
    }

    private func node(_ name: String, _ security: MessageSecurity) throws -> TestNode {
        try TestNode(
            name, bus: lab.bus, snapshots: lab.snapshots, directory: lab.directory, schema: lab.schema,
            security: security)
    }

    /// A node with rows and a tombstone.
    private func writer(_ security: MessageSecurity) throws -> TestNode {
        let a = try node("alpha", security)
        for number in 1...8 { try a.write("INSERT INTO setting VALUES ('key\(number)', 'confidential')") }
        try a.write("DELETE FROM setting WHERE key = 'key3'")
        try exchange([a])
        return a
    }

    private func send(_ messages: [IncomingMessage], to bus: InMemoryBus) throws {
        let producer = try bus.makeProducer { _ in }
        for message in messages {
            try producer.send(
                OutgoingMessage(key: message.key, headers: message.headers, payload: message.payload, tag: 0))
        }
        producer.close()
    }

    private func expectNothingVisible(_ bus: InMemoryBus) throws {
        let all = try messages(bus)
        #expect(!all.isEmpty)
        for message in all {
            for text in ["confidential", "setting", "key1", "key3", "alpha"] {
                #expect(!message.visible.contains(text), "\(text)")
            }
            #expect(message.text("martlet-key") != nil)
        }
    }

    // MARK: Snapshots

    @Test func nodesWithTheKeyReadASnapshotThatRevealsNothingToOthers() throws {
        let a = try writer(MessageSecurity(keys: keys))
        try a.makeSnapshot()
        try expectNothingVisible(lab.snapshots)
        try lab.prune()
        let b = try node("b", MessageSecurity(keys: keys.copy()))
        try b.consume()
        try expectSame([a, b])
        #expect(try b.keys().count == 7)
    }

    @Test func aSnapshotWithoutItsKeyIsLoadedOnceTheKeyIsThere() throws {
        let old = keys.copy()
        try keys.add("k2")
        let a = try writer(MessageSecurity(keys: keys))
        try a.makeSnapshot()
        try lab.prune()
        let b = try node("b", MessageSecurity(keys: old))
        try b.consume()
        #expect(try b.keys() == [])
        let listed = try #require(b.snapshots).list()
        #expect(listed.count == 1)
        guard case .damaged(let why) = listed[0].state else { throw TestFailure("it is not damaged") }
        #expect(why.contains("key k2"))
        old.become(keys)
        try b.consume()
        try expectSame([a, b])
    }

    @Test(arguments: [false, true]) func forgedMessagesEnterNoSnapshot(isFirst: Bool) throws {
        let a = try writer(MessageSecurity(keys: keys))
        try a.makeSnapshot()
        let genuine = try messages(lab.snapshots)
        // The forged messages have the same record keys: without encryption, from another maker, changed, and one in
        // the place of another.
        var forged: [IncomingMessage] = []
        for (index, message) in genuine.enumerated() {
            var plain = message
            plain.set("martlet-key", nil)
            var foreign = message
            foreign.set("martlet-origin", UUID().uuidString)
            var changed = message
            changed.payload[20] ^= 1
            var moved = message
            moved.set("martlet-number", genuine[(index + 1) % genuine.count].text("martlet-number"))
            forged += [plain, foreign, changed, moved].map { $0.summed() }
        }
        lab.snapshots.wipe()
        try send(isFirst ? forged + genuine : genuine + forged, to: lab.snapshots)
        try lab.prune()
        let b = try node("b", MessageSecurity(keys: keys))
        try b.consume()
        try expectSame([a, b])
    }

    @Test func aForgedSnapshotIsListedWithItsReasonAndNotLoaded() throws {
        let stranger = try writer(MessageSecurity(keys: try TestKeys("k1")))
        try stranger.makeSnapshot()
        try lab.prune()
        let b = try node("b", MessageSecurity(keys: keys))
        try b.consume()
        #expect(try b.keys() == [])
        let listed = try #require(b.snapshots).list()
        #expect(listed.count == 1 && !listed[0].isComplete)
        // A node that may make no snapshots is refused, too, even if it has the key.
        let other = try writerNamed("other", MessageSecurity(keys: keys))
        try other.makeSnapshot()
        let c = try node("c", MessageSecurity(keys: keys) { $0.origins = [UUID(): []] })
        try c.consume()
        #expect(try #require(c.snapshots).list().allSatisfy { !$0.isComplete })
    }

    private func writerNamed(_ name: String, _ security: MessageSecurity) throws -> TestNode {
        let node = try node(name, security)
        try node.write("INSERT INTO setting VALUES ('\(name)', 1)")
        try node.publish()
        return node
    }

    @Test func aNodeCannotMakeASnapshotInTheNameOfAnother() throws {
        let key = NodeSigningKey()
        let a = try writer(MessageSecurity(keys: keys, signingKey: key))
        let evil = NodeSigningKey()
        let b = try node(
            "b",
            MessageSecurity(keys: keys) {
                $0.origins = [a.engine.node.uuid: [key.publicKey]]
            })
        try a.restart(security: MessageSecurity(keys: keys, signingKey: evil))
        try a.makeSnapshot()
        try lab.prune()
        try b.consume()
        #expect(try b.keys() == [])
        try a.restart(security: MessageSecurity(keys: keys, signingKey: key))
        try a.makeSnapshot()
        try b.consume()
        #expect(try b.keys().count == 7)
    }

    // MARK: Checks

    private func checked(_ node: TestNode) throws -> CheckedNode {
        let antiEntropy = AntiEntropy(engine: node.engine, bus: checks, topic: "t")
        _ = try antiEntropy.connect()
        return CheckedNode(node: node, antiEntropy: antiEntropy)
    }

    @Test func checksRepairAndRevealNothingToOthers() throws {
        let a = try checked(writer(MessageSecurity(keys: keys)))
        let b = try checked(node("b", MessageSecurity(keys: keys)))
        try exchange([a.node, b.node])
        try b.damage("DELETE FROM setting WHERE key = 'key1'; UPDATE setting SET value = 'bad' WHERE key = 'key2'")
        try MartletSyncTests.check([a, b])
        #expect(try Set(b.found()) == ["missingRow repaired setting", "otherValue repaired setting.value"])
        try expectNothingVisible(checks)
        #expect(a.progress.ignored == 0 && b.progress.ignored == 0)
        try expectAgreement([a, b])
    }

    enum Forgery: CaseIterable { case plain, changed, otherSender, otherCheck, wrongKey, neverSealed }

    @Test(arguments: Forgery.allCases) func aForgedCheckIsIgnored(_ forgery: Forgery) throws {
        let a = try checked(writer(MessageSecurity(keys: keys)))
        let b = try checked(node("b", MessageSecurity(keys: keys)))
        try exchange([a.node, b.node])
        #expect(try a.antiEntropy.begin())
        var message = try #require(try messages(checks).last)
        checks.wipe()
        let before = try b.node.members().count
        let late = try checked(b.node)
        switch forgery {
        case .plain: message.set("martlet-key", nil)
        case .changed: message.payload[30] ^= 1
        case .otherSender: message.set("martlet-origin", UUID().uuidString)
        case .otherCheck: message.set("martlet-check", UUID().uuidString)
        case .wrongKey, .neverSealed:
            try a.node.restart(security: MessageSecurity(keys: forgery == .wrongKey ? try TestKeys("k1") : nil))
            let other = try checked(a.node)
            #expect(try other.antiEntropy.begin())
            message = try #require(try messages(checks).last)
        }
        try send([message.summed()], to: checks)
        #expect(late.antiEntropy.step(timeout: .milliseconds(1)))
        #expect(late.progress.ignored > 0 && late.progress.sent == 0)
        #expect(try b.node.members().count == before)
    }

    @Test func aNodeCannotSpeakForAnotherInACheck() throws {
        let key = NodeSigningKey()
        let a = try checked(writer(MessageSecurity(keys: keys, signingKey: key)))
        let b = try checked(
            node("b", MessageSecurity(keys: keys) { $0.origins = [a.node.engine.node.uuid: [key.publicKey]] }))
        try exchange([a.node, b.node])
        // The message is signed by a, and claims to come from another node.
        var wire = WireCheckMessage()
        wire.format = 1
        wire.check = Data(NodeID(UUID()).bytes)
        wire.header.maker = Data(NodeID(UUID()).bytes)
        wire.header.topic = "t"
        var message = try AntiEntropyFormat.message(wire)
        message.headers = message.headers.map {
            $0.name == "martlet-origin" ? MessageHeader("martlet-origin", a.node.engine.node.description) : $0
        }
        let sealed = try a.node.engine.messageGuard.seal(message, topic: checks.topic, origin: a.node.engine.node)
        let producer = try checks.makeProducer { _ in }
        try producer.send(sealed)
        producer.close()
        #expect(b.antiEntropy.step(timeout: .milliseconds(1)))
        #expect(b.progress.ignored == 1)
        #expect(try b.node.members().isEmpty)
    }
}
