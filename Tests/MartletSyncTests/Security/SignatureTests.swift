import Foundation
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Messages that are signed by their origin.
@Suite struct SignatureTests {
    let lab: Lab
    let keys: TestKeys
    let signingKey = NodeSigningKey()

    init() throws {
        lab = try Lab()
        keys = try TestKeys("k1")
    }

    private func insert(_ node: TestNode, _ keys: String...) throws {
        for key in keys { try node.write("INSERT INTO setting VALUES ('\(key)', 1)") }
        try node.publish()
    }

    /// A node that accepts only messages signed by these nodes.
    private func reader(_ origins: [UUID: [NodePublicKey]], keys: TestKeys? = nil) throws -> TestNode {
        try lab.node("reader", MessageSecurity(keys: keys) { $0.origins = origins })
    }

    @Test(arguments: [false, true]) func aMessageSignedByItsOriginIsAccepted(isSealed: Bool) throws {
        let keys = isSealed ? keys : nil
        let a = try lab.node("a", MessageSecurity(keys: keys, signingKey: signingKey))
        let b = try reader([a.engine.node.uuid: [NodeSigningKey().publicKey, signingKey.publicKey]], keys: keys)
        try insert(a, "one")
        try b.consume()
        #expect(try b.keys() == ["one"])
        #expect(try messages(lab.bus)[0].text("martlet-signature") != nil)
        // The node accepts its own messages, too.
        #expect(try a.consume().own == 1)
        #expect(try a.store.quarantined() == [])
        #expect(try a.engine.confirmed() == 1)
    }

    enum Forgery: CaseIterable {
        case unsigned, signedByAnother, foreignOrigin, changed, renumbered, signatureOfAnother
    }

    @Test(arguments: Forgery.allCases, [false, true])
    func aMessageNotSignedByItsOriginIsQuarantinedAndProvesNothing(_ forgery: Forgery, isSealed: Bool) throws {
        let ring = isSealed ? keys : nil
        let a = try lab.node("a", MessageSecurity(keys: ring, signingKey: signingKey))
        let b = try reader([a.engine.node.uuid: [signingKey.publicKey]], keys: ring)
        try insert(a, "one", "two")
        let all = try messages(lab.bus)
        // The forger has the key of the ring, or needs none.
        let author: MessageSecurity =
            forgery == .unsigned
            ? MessageSecurity(keys: ring) : MessageSecurity(keys: ring, signingKey: NodeSigningKey())
        var forged = all[1]
        switch forgery {
        case .unsigned, .signedByAnother:
            // This is the same node, like a forger that uses its ID.
            try a.restart(security: author)
            try insert(a, "three")
            forged = try #require(try messages(lab.bus).last)
        case .foreignOrigin:
            let other = try lab.node("other", author)
            try insert(other, "other")
            forged = try #require(try messages(lab.bus).last)
            #expect(forged.text("martlet-origin") == other.engine.node.description)
        case .changed: forged.payload[5] ^= 1
        case .renumbered: forged.set("martlet-sequence", "900")
        case .signatureOfAnother: forged.set("martlet-signature", all[0].text("martlet-signature"))
        }
        try b.deliver([forged.summed()])
        #expect(try b.keys() == [])
        #expect(try b.store.quarantined().map(\.isProven) == [false])
        #expect(try b.sequences() == [])
        try b.deliver(all)
        #expect(try b.keys() == ["one", "two"])
        #expect(try b.sequences() == ["2"])
        #expect(try b.engine.retryQuarantined().kept == 1)
        #expect(try b.reasons().count == 1)
    }

    @Test func anAllowListWithoutKeysExcludesOtherNodes() throws {
        let a = try lab.node("a")
        let other = try lab.node("other")
        let b = try reader([a.engine.node.uuid: []])
        try insert(a, "one")
        try insert(other, "two")
        try b.consume()
        #expect(try b.keys() == ["one"])
        #expect(try b.reasons().count == 1 && b.reasons()[0].contains("not in security.origins"))
        // The message is accepted once its origin is on the list.
        try b.restart(
            security: MessageSecurity(keys: nil) {
                $0.origins = [a.engine.node.uuid: [], other.engine.node.uuid: []]
            })
        #expect(try b.engine.retryQuarantined().applied == 1)
        #expect(try b.keys() == ["one", "two"])
    }

    @Test func chunksAreSignedOneByOne() throws {
        let a = try lab.node("a", MessageSecurity(keys: nil, signingKey: signingKey)) { $0.maxMessageBytes = 1000 }
        let b = try reader([a.engine.node.uuid: [signingKey.publicKey]])
        try a.write("INSERT INTO setting VALUES ('large', hex(zeroblob(2000)))")
        try a.publish()
        var all = try messages(lab.bus)
        all[2].payload[0] ^= 1
        try b.deliver(all.map { $0.summed() })
        #expect(try b.keys() == [])
        #expect(try b.chunks().count == all.count - 1)
        try b.consume()
        #expect(try b.keys() == ["large"])
    }
}
