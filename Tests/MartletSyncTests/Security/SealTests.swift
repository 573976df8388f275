import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Transactions that only nodes with the key can read.
@Suite struct SealTests {
    let lab: Lab
    let keys: TestKeys

    init() throws {
        lab = try Lab()
        keys = try TestKeys("k1")
    }

    private func insert(_ node: TestNode, _ keys: String...) throws {
        for key in keys { try node.write("INSERT INTO setting VALUES ('\(key)', 'confidential')", author: "somebody") }
        try node.publish()
    }

    @Test func nodesWithTheKeyReadMessagesThatRevealNothingToOthers() throws {
        let a = try lab.node("alpha", MessageSecurity(keys: keys))
        let b = try lab.node("beta", MessageSecurity(keys: keys.copy()))
        try insert(a, "one", "two")
        try exchange([a, b])
        try expectSame([a, b])
        #expect(try b.keys() == ["one", "two"])
        let all = try messages(lab.bus)
        #expect(all.count == 2)
        for message in all {
            for text in ["confidential", "setting", "one", "two", "alpha", "somebody"] {
                #expect(!message.visible.contains(text), "\(text)")
            }
            #expect(message.text("martlet-key") == "k1")
            #expect(
                Set(message.headers.map(\.name)) == [
                    "martlet-format", "martlet-origin", "martlet-sequence", "martlet-key", "martlet-crc32",
                ])
        }
    }

    @Test func aRepublishedTransactionIsTheSameInOtherBytes() throws {
        let a = try lab.node("a", MessageSecurity(keys: keys))
        let b = try lab.node("b", MessageSecurity(keys: keys))
        try insert(a, "one")
        try exchange([a, b])
        a.publisher.rewind(to: 0)
        try a.publish()
        let all = try messages(lab.bus)
        #expect(all.count == 2 && all[0].payload != all[1].payload)
        let report = try b.consume()
        #expect(report.duplicates == 1 && report.rewound == [] && report.quarantined == 0)
        // The node compares it with what it has made itself.
        #expect(try a.consume().own == 1)
        #expect(a.consumer.lastFailure == nil)
        // After a start, the node reads the last message before its offset again, and recognizes it.
        try b.restart()
        #expect(try b.consume().rewound == [])
    }

    @Test(arguments: [false, true]) func aTransactionWithoutItsKeyIsAppliedOnceTheKeyIsThere(afterRestart: Bool) throws
    {
        let old = keys.copy()
        let a = try lab.node("a", MessageSecurity(keys: keys))
        let b = try lab.node("b", MessageSecurity(keys: old))
        try keys.add("k2")
        try insert(a, "one", "two")
        try b.consume()
        #expect(try b.keys() == [])
        #expect(try b.store.quarantined().map(\.missingKey) == ["k2", "k2"])
        #expect(try b.reasons().allSatisfy { $0.contains("key k2") })
        // It blocks nothing, and is not retried in vain.
        let c = try lab.node("c", MessageSecurity(keys: old.copy()))
        try insert(c, "three")
        try b.consume()
        #expect(try b.keys() == ["three"])
        old.become(keys)
        if afterRestart { try b.restart() }
        try b.consume()
        #expect(try b.keys() == ["one", "three", "two"])
        #expect(try b.store.quarantined() == [])
        #expect(try b.gaps() == [])
    }

    /// Another program may keep the write lock for too long, just when the key arrives.
    @Test func messagesThatLackAKeyAreRetriedAgainIfTheStoreWasLocked() throws {
        var files = StoreConfiguration.impatient
        files.busyTimeout = .milliseconds(20)
        let old = keys.copy()
        let a = try lab.node("a", MessageSecurity(keys: keys))
        let b = try TestNode(
            "b", bus: lab.bus, directory: lab.directory, schema: lab.schema, attach: lab.request,
            security: MessageSecurity(keys: old), files: files)
        try keys.add("k2")
        try insert(a, "one")
        try b.consume()
        #expect(try b.store.quarantined().map(\.missingKey) == ["k2"])
        let other = try DatabaseQueue.ofAnotherProgram(b.path)
        try other.inDatabase { try $0.execute(sql: "BEGIN IMMEDIATE") }
        old.become(keys)
        #expect(b.consumer.step(timeout: .milliseconds(1)) == nil)
        try other.inDatabase { try $0.execute(sql: "ROLLBACK") }
        try other.close()
        try b.consume()
        #expect(try b.keys() == ["one"])
        #expect(try b.store.quarantined() == [])
    }

    @Test func anotherKeyWithTheSameIDOpensNothingUntilTheRightOneIsThere() throws {
        let other = try TestKeys("k1")
        let a = try lab.node("a", MessageSecurity(keys: keys))
        let b = try lab.node("b", MessageSecurity(keys: other))
        try insert(a, "one")
        try b.consume()
        #expect(try b.reasons().count == 1 && b.reasons()[0].contains("can't be decrypted with key k1"))
        #expect(try b.sequences() == [])
        other.become(keys)
        try b.consume()
        #expect(try b.keys() == ["one"])
        #expect(try b.store.quarantined() == [])
    }

    @Test func keysAreRotatedWithoutStoppingAnyNode() throws {
        let others = keys.copy()
        let a = try lab.node("a", MessageSecurity(keys: keys))
        let b = try lab.node("b", MessageSecurity(keys: others))
        try insert(a, "one")
        try exchange([a, b])
        try keys.add("k2")
        others.become(keys)
        try insert(a, "two")
        try insert(b, "three")
        try exchange([a, b])
        try expectSame([a, b])
        #expect(try messages(lab.bus).map { $0.text("martlet-key") } == ["k1", "k2", "k2"])
        // If the key ring can't be read, the former one stays in use.
        keys.spoil()
        try insert(a, "four")
        try exchange([a, b])
        #expect(try b.keys() == ["four", "one", "three", "two"])
    }

    @Test func aKeyThatArrivesInTheMiddleOfABatchIsNotMissed() throws {
        let old = keys.copy()
        let a = try lab.node("a", MessageSecurity(keys: keys))
        let b = try lab.node("b", MessageSecurity(keys: old)) { $0.applyBatchTransactions = 1 }
        try keys.add("k2")
        try insert(a, "one", "two", "three")
        // The second message is opened ahead, while the first is applied.
        b.consumer.step(timeout: .milliseconds(1))
        old.become(keys)
        try b.consume()
        #expect(try b.keys() == ["one", "three", "two"])
        #expect(try b.store.quarantined() == [])
    }

    // MARK: Attacks

    enum Attack: CaseIterable {
        case bitFlipped, cut, grown, renumbered, otherOrigin, otherKeyID, keyMoved, headerAdded, headerTwice,
            chunkClaimed,
            madePlain, otherTopic
    }

    private func attack(_ message: IncomingMessage, _ attack: Attack) throws -> IncomingMessage {
        var message = message
        switch attack {
        case .bitFlipped: message.payload[message.payload.count / 2] ^= 1
        case .cut: message.payload.removeLast()
        case .grown: message.payload.append(0)
        case .renumbered: message.set("martlet-sequence", "7")
        case .otherOrigin: message.set("martlet-origin", UUID().uuidString)
        case .otherKeyID: message.set("martlet-key", "k0")
        case .keyMoved: message.key = Array(UUID().uuidString.utf8)
        case .headerAdded: message.set("martlet-more", "1")
        case .headerTwice: message.headers.append(MessageHeader("martlet-sequence", "9"))
        case .chunkClaimed: message.set("martlet-chunk", "0/2")
        case .madePlain: message.set("martlet-key", nil)
        case .otherTopic: break
        }
        return message.summed()
    }

    @Test(arguments: Attack.allCases) func aTamperedMessageIsQuarantinedAndChangesNothing(_ attack: Attack) throws {
        let a = try lab.node("a", MessageSecurity(keys: keys))
        let b = try lab.node("b", MessageSecurity(keys: keys))
        try insert(a, "one")
        let genuine = try messages(lab.bus)
        let forged = try genuine.map { try self.attack($0, attack) }
        try b.deliver(forged, topic: attack == .otherTopic ? "u" : "t")
        #expect(try b.keys() == [])
        #expect(try b.reasons().count == 1)
        #expect(try b.store.quarantined().map(\.isProven) == [false])
        if attack == .headerTwice { #expect(try b.reasons()[0].contains("header martlet-sequence twice")) }
        #expect(try b.sequences() == [])
        // The genuine transaction still arrives, and the forged message stays in the quarantine, even after a retry.
        try b.consume()
        #expect(try b.keys() == ["one"])
        #expect(try b.sequences() == ["1"])
        #expect(try b.engine.retryQuarantined().kept == 1)
    }

    @Test func aForgedMessageOfThisNodeStopsNothing() throws {
        let a = try lab.node("a", MessageSecurity(keys: keys))
        try insert(a, "one")
        var forged = try messages(lab.bus)[0]
        forged.set("martlet-sequence", "1000")
        forged.set("martlet-key", nil)
        try lab.send([forged.summed()])
        try a.consume()
        #expect(a.consumer.lastFailure == nil)
        #expect(try a.reasons().count == 1)
        try a.engine.checkIdentity(on: lab.bus)
        try a.restart()
        try a.engine.checkIdentity(on: lab.bus)
    }

    /// The store and the key ring are from a backup that was made before a rotation.
    @Test(arguments: [true, false]) func anOwnMessageWithoutItsKeyStopsARestoredNodeThatSigns(signs: Bool) throws {
        let (old, key) = (keys.copy(), signs ? NodeSigningKey() : nil)
        let a = try lab.node("a", MessageSecurity(keys: keys, signingKey: key))
        try insert(a, "one")
        let file = lab.directory.path("backup.sqlite")
        try a.backUp(to: file)
        try keys.add("k2")
        try insert(a, "two")
        let restored = try TestNode(
            "restored", bus: lab.bus, directory: lab.directory, schema: "", copyOf: file,
            security: MessageSecurity(keys: old, signingKey: key))
        guard signs else {
            // Anybody could have sent it.
            return try restored.engine.checkIdentity(on: lab.bus)
        }
        let error = try #require(throws: StoreError.self) { try restored.engine.checkIdentity(on: lab.bus) }
        #expect(error.code == .copied)
        // The same message with another number proves nothing.
        var forged = try messages(lab.bus)[1]
        forged.set("martlet-sequence", "1000")
        try lab.send([forged])
        try a.consume()
        try a.engine.checkIdentity(on: lab.bus)
        try a.restart(security: MessageSecurity(keys: old, signingKey: key))
        try a.engine.checkIdentity(on: lab.bus)
    }

    /// It refuses to read its own plaintext, but must not use its numbers again.
    @Test func anOwnPlaintextMessageStopsARestoredNodeThatSigns() throws {
        let key = NodeSigningKey()
        let a = try lab.node("a", MessageSecurity(signingKey: key))
        try insert(a, "one")
        let file = lab.directory.path("backup.sqlite")
        try a.backUp(to: file)
        try insert(a, "two")
        let restored = try TestNode(
            "restored", bus: lab.bus, directory: lab.directory, schema: "", copyOf: file,
            security: MessageSecurity(keys: keys, signingKey: key))
        let error = #expect(throws: StoreError.self) { try restored.engine.checkIdentity(on: lab.bus) }
        #expect(error?.code == .copied)
    }

    @Test func discardingAForgedMessageClosesNoGap() throws {
        let a = try lab.node("a", MessageSecurity(keys: keys))
        let b = try lab.node("b", MessageSecurity(keys: keys))
        try insert(a, "one", "two")
        let all = try messages(lab.bus)
        var forged = all[0]
        forged.payload[20] ^= 1
        try b.deliver([forged.summed(), all[1]])
        #expect(try b.sequences() == ["2", "gap|1|1"])
        let id = try #require(try b.store.quarantined().first?.id)
        #expect(try b.store.discardQuarantined(id)?.closedGap == false)
        try b.deliver([all[0]])
        #expect(try b.keys() == ["one", "two"])
    }

    @Test func replayedAndReorderedMessagesChangeNothing() throws {
        let a = try lab.node("a", MessageSecurity(keys: keys))
        let b = try lab.node("b", MessageSecurity(keys: keys))
        try insert(a, "one", "two", "three")
        let all = try messages(lab.bus)
        let report = try b.deliver([all[2], all[0], all[0], all[1], all[2]])
        #expect(report.applied == 3 && report.duplicates == 2 && report.quarantined == 0)
        #expect(try b.sequences() == ["3"])
        try a.consume()
        try expectSame([a, b])
    }

    // MARK: Chunks

    private func large(_ node: TestNode, _ key: String = "large") throws -> [IncomingMessage] {
        let before = try messages(lab.bus).count
        try node.write("INSERT INTO setting VALUES ('\(key)', hex(zeroblob(2000)))")
        try node.publish()
        return Array(try messages(lab.bus).dropFirst(before))
    }

    @Test func eachChunkIsSealedByItself() throws {
        let a = try lab.node("a", MessageSecurity(keys: keys)) { $0.maxMessageBytes = 1000 }
        let chunks = try large(a)
        #expect(chunks.count == 5)
        #expect(chunks.allSatisfy { $0.payload.count <= 1000 })
        // A checksum of the plaintext would help to guess it.
        #expect(
            chunks.allSatisfy { chunk in
                Set(chunk.headers.map(\.name)) == [
                    "martlet-format", "martlet-origin", "martlet-sequence", "martlet-chunk", "martlet-size",
                    "martlet-key", "martlet-crc32",
                ]
            })
        let b = try lab.node("b", MessageSecurity(keys: keys))
        // One chunk takes the place of another.
        var swapped = chunks[1]
        swapped.set("martlet-chunk", chunks[0].text("martlet-chunk"))
        try b.deliver([swapped] + chunks.dropFirst())
        #expect(try b.keys() == [])
        #expect(try b.reasons().count == 1)
        #expect(try b.chunks().count == 4)
        try b.deliver([chunks[0]])
        #expect(try b.keys() == ["large"])
    }

    @Test func chunksWithoutAKeyAreNotStoredAsChunksAndFormTheTransactionLater() throws {
        let old = keys.copy()
        let a = try lab.node("a", MessageSecurity(keys: keys)) { $0.maxMessageBytes = 1000 }
        let b = try lab.node("b", MessageSecurity(keys: old))
        try keys.add("k2")
        _ = try large(a)
        try b.consume()
        #expect(try b.chunks() == [])
        #expect(try b.reasons().count == 5)
        old.become(keys)
        try b.consume()
        #expect(try b.keys() == ["large"])
        #expect(try b.store.quarantined() == [])
        #expect(try b.chunks() == [])
    }

    @Test func chunksOfTwoAttemptsFormNoTransaction() throws {
        let a = try lab.node("a", MessageSecurity(keys: keys)) { $0.maxMessageBytes = 2100 }
        let first = try large(a)
        let b = try lab.node("b", MessageSecurity(keys: keys))
        // The same transaction, in as many chunks of another size, as after a change of the configuration.
        try a.restart { $0.maxMessageBytes = 2300 }
        a.publisher.rewind(to: 0)
        let before = try messages(lab.bus).count
        try a.publish()
        let second = Array(try messages(lab.bus).dropFirst(before))
        #expect(first.count == 2 && second.count == 2 && first[0].payload.count != second[0].payload.count)
        try b.deliver([first[0], second[1]])
        // The later chunk has replaced the earlier one.
        #expect(try b.keys() == [] && b.reasons() == [])
        #expect(try b.chunks().map(\.bytes) == [second[1].payload.count - MessageGuard.overhead])
        try b.deliver([second[0]])
        #expect(try b.keys() == ["large"])
    }

    // MARK: Switching encryption on

    @Test func plaintextIsRefusedByANodeWithAKeyRing() throws {
        let a = try lab.node("a")
        let b = try lab.node("b", MessageSecurity(keys: keys))
        try insert(a, "one")
        try b.consume()
        #expect(try b.keys() == [])
        #expect(try b.reasons().count == 1 && b.reasons()[0].contains("security.acceptPlaintext"))
        #expect(try b.sequences() == [])
        // A node without a key ring quarantines sealed messages.
        try insert(b, "two")
        try a.consume()
        #expect(try a.store.quarantined().map(\.missingKey) == ["k1"])
        #expect(try a.reasons()[0].contains("no key ring"))
    }

    @Test func nodesGetTheirKeyRingsOneAfterTheOther() throws {
        let a = try lab.node("a")
        let b = try lab.node("b", MessageSecurity(keys: keys) { $0.acceptPlaintext = .accept })
        try insert(a, "one")
        try insert(b, "two")
        try exchange([a, b])
        #expect(try b.keys() == ["one", "two"])
        #expect(try a.keys() == ["one"])
        try a.restart(security: MessageSecurity(keys: keys) { $0.acceptPlaintext = .accept })
        try a.consume()
        try expectSame([a, b])
        #expect(try a.store.quarantined() == [])
    }

    @Test func aNodeReadsItsFormerPlaintextAndRepublishesItSealed() throws {
        let a = try lab.node("a")
        try insert(a, "one", "two")
        try exchange([a])
        try a.restart(security: MessageSecurity(keys: keys))
        // The node reads the whole topic again.
        let all = try messages(lab.bus)
        lab.bus.wipe()
        try lab.send(Array(all.prefix(1)))
        try exchange([a])
        #expect(try a.store.quarantined() == [])
        let b = try lab.node("b", MessageSecurity(keys: keys))
        try b.consume()
        #expect(try b.keys() == ["one", "two"])
    }

    @Test func messagesThatTheBrokerStampedBeforeTheLimitMayBePlaintext() throws {
        let a = try lab.node("a")
        try insert(a, "one", "two", "three")
        var all = try messages(lab.bus)
        all[0].timestamp = 1_000_000
        all[1].timestamp = 3_000_000
        // A producer's own timestamp doesn't count.
        all[2].timestamp = 1_000_000
        all[2].isBrokerTimestamp = false
        let limit = Date(timeIntervalSince1970: 2000)
        let b = try lab.node("b", MessageSecurity(keys: keys) { $0.acceptPlaintext = .before(limit) })
        try b.deliver(all)
        #expect(try b.keys() == ["one"])
        #expect(try b.reasons().count == 2)
        // A retry with another limit respects it, too.
        try b.restart(
            security: MessageSecurity(keys: keys) { $0.acceptPlaintext = .before(limit + 2000) })
        #expect(try b.engine.retryQuarantined().applied == 1)
        #expect(try b.keys() == ["one", "two"])
    }
}
