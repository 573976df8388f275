import Foundation
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Messages that are too large are quarantined with a reason, and block nothing.
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

    /// What the quarantine stores of each message: bytes of its payload, bytes that it had, and the number of messages.
    private func kept(_ node: TestNode) throws -> [[Int]] {
        try node.store.quarantined().map { [$0.keptBytes, $0.payloadBytes, $0.messageCount] }
    }

    @Test func p55TheBeginningOfATooLargeMessageIsKeptUntilTheLimitIsRaised() throws {
        let a = try lab.node("a")
        let b = try lab.node("b", security { $0.maxMessageBytes = 10_000 }) { $0.maxMessageBytes = 4000 }
        try insert(a, "large", bytes: 12_000)
        try insert(a, "small", bytes: 100)
        try b.consume()
        #expect(try b.keys() == ["small"])
        #expect(try b.reasons().count == 1 && b.reasons()[0].contains("security.limits.maxMessageBytes"))
        let payload = try messages(lab.bus)[0].payload
        #expect(try kept(b) == [[1024, payload.count, 1]])
        #expect(try b.store.quarantined()[0].digest == KeptMessage.digest(of: payload))
        #expect(try b.sequences() == ["2", "gap|1|1"])
        let report = try b.engine.retryQuarantined()
        #expect(report.kept == 1 && report.unkept == 1)
        // The message is read again, and only once.
        try b.restart(security: MessageSecurity())
        try b.consume()
        #expect(try b.keys() == ["large", "small"])
        #expect(try b.sequences() == ["2"])
        #expect(try b.store.quarantined() == [])
        try b.restart()
        #expect(try b.consume().duplicates == 0)
    }

    @Test func p55ATooLargeMessageThatTheTopicHasDroppedSaysSoAndCanBeDiscarded() throws {
        let a = try lab.node("a")
        let b = try lab.node("b", security { $0.maxMessageBytes = 10_000 }) { $0.maxMessageBytes = 4000 }
        try insert(a, "large", bytes: 12_000)
        try insert(a, "small", bytes: 100)
        try b.consume()
        lab.bus.truncate(partition: 0, upTo: 1)
        for _ in 0..<2 {
            try b.restart(security: MessageSecurity())
            try b.consume()
        }
        #expect(try b.reasons().count == 1)
        #expect(try b.reasons()[0].hasSuffix("or discard it. The topic does not have it any more."))
        // The message was too large to be verified, so its origin is not proven: its gap stays.
        #expect(try b.store.discardQuarantined(1)?.closedGap == false)
        #expect(try b.store.quarantined() == [])
    }

    /// A bus that delivers only the beginning of messages that are too large.
    @Test func p55AMessageThatTheBusTruncatedIsKeptAndReadAgain() throws {
        let a = try lab.node("a")
        let b = try lab.node("b", security { $0.maxMessageBytes = 10_000 }) { $0.maxMessageBytes = 4000 }
        try insert(a, "large", bytes: 12_000)
        var message = try messages(lab.bus)[0]
        let payload = message.payload
        payload.withUnsafeBytes { message.take($0, limit: payload.count) }
        #expect(message.cut == nil && message.payload == payload)
        payload.withUnsafeBytes { message.take($0, limit: 10_000) }
        #expect(message.payload == Array(payload.prefix(1024)))
        message.position.partition = 0
        #expect(try b.engine.apply([message], topic: "t").quarantined == 1)
        #expect(try kept(b) == [[1024, payload.count, 1]])
        #expect(try b.store.quarantined()[0].digest == KeptMessage.digest(of: payload))
        #expect(try b.reasons()[0].contains("has \(payload.count) bytes"))
        try b.restart(security: MessageSecurity())
        try b.consume()
        #expect(try b.keys() == ["large"])
        #expect(try b.store.quarantined() == [])
    }

    /// A batch that the bus can't decode: one message represents it, and is read again after each start.
    @Test func p55ABatchThatTheBusCannotReadIsListedOnceWithItsOffset() throws {
        let a = try lab.node("a")
        let b = try lab.node("b")
        try insert(a, "k", bytes: 10)
        var unreadable = IncomingMessage(
            position: PartitionPosition(partition: 3, offset: 7), key: [], headers: [], payload: [], timestamp: -1,
            isBrokerTimestamp: false)
        unreadable.problem = "can't be read"
        for _ in 0..<2 {
            let report = try b.engine.apply([unreadable], topic: "t")
            #expect(report.rewound == [])
            try b.restart()
            // This is like a recreated topic: the partition is read again from its beginning.
            try TopicPositions(b.engine.session, topic: "t").reset(
                to: [PartitionPosition(partition: 3, offset: 0)], forgetsOwn: false)
        }
        let found = try b.store.quarantined()
        #expect(found.map(\.reason) == ["can't be read"] && found.map(\.offset) == [7])
        #expect(try b.engine.retryQuarantined().unkept == 1)
        #expect(try b.reasons() == ["can't be read"])
        #expect(try b.store.discardQuarantined(found[0].id) != nil)
        try b.consume()
        #expect(try b.keys() == ["k"])
    }

    @Test func p55AFloodBeyondTheQuarantinesLimitIsCounted() throws {
        let a = try lab.node("a")
        let limit = 40_000
        let b = try lab.node(
            "b",
            security {
                $0.maxMessageBytes = 10_000
                $0.maxQuarantineBytes = limit
            }
        ) { $0.maxMessageBytes = 4000 }
        try insert(a, "k", bytes: 10)
        var garbage = try messages(lab.bus)[0]
        for name in ["martlet-crc32", "martlet-sequence"] { garbage.set(name, nil) }
        let flood = (0..<60).map { index in
            var message = garbage
            message.payload = [UInt8](repeating: UInt8(index), count: 9000)
            return message
        }
        try lab.send(flood)
        try insert(a, "l", bytes: 10)
        try b.consume()
        #expect(try b.keys() == ["k", "l"])
        let found = try b.store.quarantined()
        #expect(found.reduce(0) { $0 + $1.messageCount } == 60)
        #expect(found.reduce(0) { $0 + $1.keptBytes } <= limit)
        // The quarantine holds whole messages, then beginnings, then one entry that counts the rest, with a digest of
        // all of them.
        #expect(found[0].keptBytes == 9000)
        #expect(found.contains { $0.keptBytes == 1024 && $0.payloadBytes == 9000 })
        let counted = try #require(found.first { $0.messageCount > 1 })
        let rest = flood.suffix(counted.messageCount)
        #expect(counted.keptBytes == 0 && counted.payloadBytes == 9000 * rest.count)
        #expect(counted.digest == rest.reduce([]) { KeptMessage.digest(of: $0 + KeptMessage.digest(of: $1.payload)) })
        #expect(try SyncStatus.read(b.store).quarantinedCount == 60)
        // As long as there is no room, the messages are not read again.
        try b.restart()
        #expect(try b.consume().quarantined == 0)
        // Once there is room, they are read again, without duplicates.
        try b.restart(security: MessageSecurity())
        try b.consume()
        #expect(try b.store.quarantined().count == 60)
        #expect(try b.store.quarantined().allSatisfy { $0.keptBytes == 9000 && $0.messageCount == 1 })
        for message in try b.store.quarantined() { #expect(try b.store.discardQuarantined(message.id) != nil) }
        #expect(try b.store.quarantined() == [])
        #expect(try b.keys() == ["k", "l"])
    }

    @Test func p55HeadersKeysAndReasonsAreBoundedToo() throws {
        let a = try lab.node("a")
        let b = try lab.node("b")
        try insert(a, "k", bytes: 10)
        var message = try messages(lab.bus)[0]
        message.payload = [1]
        message.set("martlet-crc32", nil)
        message.set("x", String(repeating: "y", count: 1_000_000))
        // This header precedes the header that it tries to replace.
        message.headers.insert(MessageHeader("z", "1\nmartlet-origin=\(NodeID(UUID()))"), at: 0)
        message.headers += (0..<10_000).map { MessageHeader("h\($0)", "v") }
        message.key = [UInt8](repeating: 1, count: 1_000_000)
        try b.deliver([message])
        #expect(try b.withContext { db, context in try DeadLetters(db, context).usedBytes() } < 20_000)
        // Text in a header's value is no header.
        #expect(try b.store.discardQuarantined(1)?.origin == a.engine.node)
    }

    @Test func p55QuarantinedMessagesOfAnEarlierVersionAreListedAndDiscarded() throws {
        let a = try lab.node("a")
        let b = try lab.node("b")
        try insert(a, "k", bytes: 10)
        var message = try messages(lab.bus)[0]
        message.payload = [1]
        message.set("martlet-crc32", nil)
        try b.deliver([message])
        try b.foreignWrite(
            """
            \(OldFormat.sql(sync: 10))
            INSERT INTO _martlet_quarantine(topic, partition, offset, reason, headers, payload, since, key, proof)
            SELECT topic, partition, 6 + column1, reason, headers, payload, since, key, proof
            FROM _martlet_quarantine JOIN (VALUES (1), (2)) ORDER BY column1;
            """)
        #expect(try b.store.quarantined().map(\.keptBytes) == [1, 1, 1])
        #expect(try SyncStatus.read(b.store).quarantinedCount == 3)
        #expect(try b.store.discardQuarantined(2)?.closedGap == false)
        try b.restart()
        // The third message names the transaction, too: this is known of messages that an earlier version kept. A new
        // connection reads it, because the former one has not seen the new columns.
        let store = try Store(path: b.path)
        #expect(try store.discardQuarantined(1)?.closedGap == false)
        #expect(try store.discardQuarantined(3)?.closedGap == true)
        try store.close()
    }

    // MARK: Chunks

    /// Chunks of any number of transactions that never become complete, that state their size wrongly, or state none.
    @Test(arguments: [nil, 1000] as [Int?])
    func p55ChunksOfUnfinishedTransactionsAreBoundedPerOriginAndInTotal(size: Int?) throws {
        let limit = 20_000
        let a = try lab.node("a") { $0.maxMessageBytes = 4000 }
        let b = try lab.node(
            "b",
            security {
                $0.maxMessageBytes = 10_000
                $0.maxTransactionBytes = limit
                $0.maxQuarantineBytes = 50_000
            }
        ) { $0.maxMessageBytes = 4000 }
        try insert(a, "k", bytes: 12_000)
        let genuine = try messages(lab.bus)
        func chunk(_ origin: NodeID, _ sequence: Int, _ index: Int, bytes: Int) -> IncomingMessage {
            var message = genuine[0]
            message.set("martlet-crc32", nil)
            message.set("martlet-origin", "\(origin)")
            message.set("martlet-sequence", "\(sequence)")
            message.set("martlet-chunk", "\(index)/1000")
            message.set("martlet-size", size.map(String.init))
            message.payload = [UInt8](repeating: 1, count: bytes)
            return message
        }
        func stored() throws -> Int { try b.chunks().reduce(0) { $0 + $1.bytes + 100 } }
        let forged = NodeID(UUID())
        // One transaction, then many of one origin, then many origins.
        let first = try b.deliver((0..<100).map { chunk(forged, 1, $0, bytes: 3000) })
        #expect(first.quarantined > 0)
        #expect(try stored() <= limit * 2)
        let many = try b.deliver((0..<100).map { chunk(forged, 2 + $0, 0, bytes: 3000) })
        #expect(many.droppedChunks > 0)
        #expect(try stored() <= 2 * limit)
        try b.deliver((0..<100).map { _ in chunk(NodeID(UUID()), 1, 0, bytes: 3000) })
        #expect(try stored() <= 4 * limit)
        try b.deliver((0..<1000).map { chunk(forged, 500 + $0, 0, bytes: 1) })
        #expect(try b.chunks().count < 100)
        // Dropped chunks count as a gap, and a whole transaction is applied.
        #expect(try b.sequences().contains { $0.hasPrefix("gap|") })
        #expect(try b.deliver(genuine).applied == 1)
        #expect(try b.keys() == ["k"])
        try b.restart()
        #expect(try stored() <= 4 * limit)
    }

    @Test func p55WhatAMessageContainsOnceIsNotStoredOncePerChange() throws {
        let a = try lab.node("a")
        let b = try lab.node("b")
        try insert(a, "k", bytes: 10)
        var message = try messages(lab.bus)[0]
        var transaction = try WireFormat.decode(message.payload)
        transaction.author = String(repeating: "a", count: 100_000)
        transaction.changes = (0..<200).map { _ in
            var change = transaction.changes[0]
            change.entity = "unknown"
            return change
        }
        message.payload = try WireFormat.encode(transaction, as: .protobuf)
        #expect(try b.deliver([message.summed()]).applied == 1)
        let sizes = try b.store.read { db in
            var sizes: [Int] = []
            try DeferredChanges.forEachPayload(db) { sizes.append($0.count) }
            return sizes
        }
        #expect(sizes.count == 200 && sizes.reduce(0, +) < 100_000)
    }

    @Test(arguments: [true, false]) func aTransactionThatIsTooLargeIsNotCollected(statesItsSize: Bool) throws {
        let a = try lab.node("a") { $0.maxMessageBytes = 4000 }
        let rules = security {
            $0.maxMessageBytes = 10_000
            $0.maxTransactionBytes = 10_000
        }
        let b = try lab.node("b", rules) { $0.maxMessageBytes = 4000 }
        try insert(a, "large", bytes: 20_000)
        try insert(a, "small", bytes: 100)
        var all = try messages(lab.bus)
        if !statesItsSize { for index in all.indices { all[index].set("martlet-size", nil) } }
        try b.deliver(all)
        #expect(try b.keys() == ["small"])
        #expect(try b.chunks().reduce(0) { $0 + $1.bytes } <= (statesItsSize ? 0 : 10_000))
        #expect(try b.reasons().allSatisfy { $0.contains("security.limits.maxTransactionBytes") })
        #expect(try b.reasons().count == (statesItsSize ? 6 : 3))
        try b.restart(security: MessageSecurity())
        _ = try b.engine.retryQuarantined()
        #expect(try b.keys() == ["large", "small"])
        #expect(try b.store.quarantined() == [])
    }

    @Test func aRowThatIsTooLargeIsQuarantinedWithItsTransaction() throws {
        let a = try lab.node("a")
        let b = try lab.node("b", security { $0.maxRowBytes = 5000 })
        try insert(a, "large", bytes: 6000)
        // The same number of bytes, in more rows.
        try a.write("INSERT INTO setting SELECT 's' || value, hex(zeroblob(1000)) FROM json_each('[1,2,3]')")
        try a.publish()
        try b.consume()
        #expect(try b.keys() == ["s1", "s2", "s3"])
        #expect(try b.reasons().count == 1 && b.reasons()[0].contains("security.limits.maxRowBytes"))
        #expect(try b.sequences() == ["2", "gap|1|1"])
    }

    @Test func emptyChunksAreNotCollected() throws {
        let a = try lab.node("a") { $0.maxMessageBytes = 4000 }
        let b = try lab.node("b")
        try insert(a, "large", bytes: 20_000)
        var empty = try messages(lab.bus)[0]
        empty.payload = []
        try b.deliver([empty.summed()])
        #expect(try b.chunks() == [])
        #expect(try b.reasons().count == 1 && b.reasons()[0].contains("chunk is empty"))
        try b.consume()
        #expect(try b.keys() == ["large"])
    }

    @Test func aNodeThatWouldRefuseItsOwnMessagesDoesNotStart() throws {
        #expect(throws: StoreError.self) { try lab.node("a", security { $0.maxMessageBytes = 10_000 }) }
        let b = try lab.node("b")
        let node = b.engine.node.uuid
        let key = NodeSigningKey()
        #expect(throws: StoreError.self) { try b.restart(security: security { $0.origins = [node: [key.publicKey]] }) }
        try b.restart(security: MessageSecurity(keys: nil, signingKey: key) { $0.origins = [node: [key.publicKey]] })
    }

    @Test func invalidLimitsAreRefused() throws {
        var rules = SecurityConfiguration()
        rules.maxMessageBytes = 100
        rules.maxTransactionBytes = 10
        rules.maxRowBytes = 0
        rules.origins = [:]
        #expect(rules.validate().count == 4)
        #expect(throws: StoreError.self) { try lab.node("a", MessageSecurity(rules)) }
    }
}
