import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Transactions that are larger than a message.
@Suite struct ChunkTests {
    let lab: Lab

    init() throws { lab = try Lab() }

    private func large(_ name: String) throws -> TestNode {
        let node = try lab.node(name) { $0.maxMessageBytes = 1000 }
        try node.write(
            "INSERT INTO setting VALUES ('\(name)', hex(zeroblob(2500))); INSERT INTO trip(name) VALUES ('\(name)')")
        try node.publish()
        return node
    }

    private func contents(_ node: TestNode) throws -> [String] {
        try node.rows("SELECT key, length(value) FROM setting UNION ALL SELECT 'trip', name FROM trip ORDER BY 1, 2")
    }

    @Test func p05ALargeTransactionGoesInChunksAndAppliesWhole() throws {
        _ = try large("a")
        let messages = try lab.messages()
        #expect(messages.count > 3)
        #expect(messages.allSatisfy { $0.payload.count <= 1000 })
        let b = try lab.node("b")
        #expect(try b.receive(messages.dropLast()).applied == 0)
        #expect(try contents(b) == [])
        #expect(try b.receive(messages.suffix(1)).applied == 1)
        #expect(try contents(b) == ["a|5000", "trip|a"])
    }

    @Test(arguments: 1...4) func p05ChunksSurviveARestartOfTheReceiver(before: Int) throws {
        _ = try large("a")
        let b = try lab.node("b") { $0.applyBatchTransactions = 1 }
        for _ in 0..<before { b.consumer.step(timeout: .milliseconds(1)) }
        #expect(try contents(b) == [])
        try b.restart()
        try b.consume()
        #expect(try contents(b) == ["a|5000", "trip|a"])
        #expect(try b.chunks() == [])
    }

    @Test func p05ChunksOfTwoOriginsMayAlternate() throws {
        _ = try large("a")
        let first = try lab.messages()
        _ = try large("b")
        let second = Array(try lab.messages().dropFirst(first.count))
        let c = try lab.node("c")
        try c.receive(zip(first, second).flatMap { [$0, $1] })
        #expect(try contents(c) == ["a|5000", "b|5000", "trip|a", "trip|b"])
    }

    @Test func p05ALostChunkIsReplacedWhenTheTransactionComesAgain() throws {
        let a = try large("a")
        let messages = try lab.messages()
        var torn = messages
        torn.remove(at: 1)
        let b = try lab.node("b")
        #expect(try b.receive(torn).applied == 0)
        try a.write("INSERT INTO trip(name) VALUES ('later')")
        try a.publish()
        let report = try b.receive(Array(try lab.messages().dropFirst(messages.count)))
        #expect(report.applied == 1)
        #expect(report.gaps == [SequenceGap(origin: a.engine.node, first: 1, last: 1)])
        #expect(try b.receive(messages).applied == 1)
        #expect(try contents(b) == contents(a))
        #expect(try b.gaps() == [])
        #expect(try b.receive(messages).duplicates == messages.count)
    }

    @Test func chunksOfAnotherSizeReplaceEarlierChunks() throws {
        let a = try large("a")
        let small = try lab.messages()
        let b = try lab.node("b")
        try b.receive(small.dropLast(2))
        let whole = small.flatMap(\.payload)
        let size = 1700
        let count = (whole.count + size - 1) / size
        let other = (0..<count).map { index in
            var message = small[0]
            message.payload = Array(whole[(index * size)..<min(whole.count, (index + 1) * size)])
            message.headers =
                message.headers.filter { $0.name != "martlet-chunk" } + [
                    MessageHeader("martlet-chunk", "\(index)/\(count)")
                ]
            return message
        }
        #expect(try b.receive(other).applied == 1)
        #expect(try contents(b) == contents(a))
    }

    @Test func p55ChunksOfOneTransactionAreBoundedWhateverCountsTheyName() throws {
        let a = try large("a")
        let messages = try lab.messages()
        let b = try lab.node("b")
        let forged = (2..<60).map { count in
            var message = messages[0]
            message.headers =
                message.headers.filter { !["martlet-chunk", "martlet-size"].contains($0.name) } + [
                    MessageHeader("martlet-chunk", "\(count - 1)/\(count)")
                ]
            return message
        }
        try b.receive(forged)
        #expect(try b.chunks().map(\.count) == [59])
        // The transaction itself still arrives.
        #expect(try b.receive(messages).applied == 1)
        #expect(try contents(b) == contents(a))
        #expect(try b.chunks() == [])
    }

    @Test func chunksThatFormNoTransactionAreQuarantinedTogether() throws {
        _ = try large("a")
        var messages = try lab.messages()
        let size = messages.reduce(0) { $0 + $1.payload.count }
        messages[0].payload = messages[0].payload.map { ~$0 }
        let b = try lab.node("b")
        #expect(try b.receive(messages).quarantined == 1)
        #expect(try b.store.quarantined().map(\.keptBytes) == [size])
    }

    /// The payloads of the chunks, joined in one message.
    private func whole(_ chunks: [IncomingMessage]) -> IncomingMessage {
        var message = chunks[0]
        message.payload = chunks.flatMap(\.payload)
        message.headers = message.headers.filter { $0.name != "martlet-chunk" }
        return message
    }

    @Test func chunksAreDroppedWhenTheirTransactionComesWhole() throws {
        let a = try large("a")
        let messages = try lab.messages()
        let b = try lab.node("b")
        let other = try large("other")
        let others = Array(try lab.messages().dropFirst(messages.count))
        try b.receive(Array(messages.dropLast()) + [others[0]])
        try b.restart()
        #expect(try b.receive([whole(messages)]).applied == 1)
        #expect(try contents(b) == contents(a))
        #expect(try Set(b.chunks().map(\.origin)).count == 1)
        try b.receive(others)
        #expect(try contents(b).count == 4)
        #expect(try b.chunks() == [])
        withExtendedLifetime(other) {}
    }

    @Test func chunksAreDroppedWhenTheirTransactionComesWholeInTheSameBatch() throws {
        _ = try large("a")
        let messages = try lab.messages()
        let b = try lab.node("b")
        try b.receive([messages[0], whole(messages)])
        #expect(try b.chunks() == [])
    }

    @Test func chunksStayWhenAWholeMessageIsInvalid() throws {
        let a = try large("a")
        let messages = try lab.messages()
        var broken = whole(messages)
        broken.payload = [1, 2, 3]
        let b = try lab.node("b")
        #expect(try b.receive(Array(messages.dropLast()) + [broken]).quarantined == 1)
        #expect(try b.receive(messages.suffix(1)).applied == 1)
        #expect(try contents(b) == contents(a))
    }

    // MARK: Two sends with one number of chunks

    /// The same transaction, cut into as many chunks of another length.
    private func cutElsewhere(_ chunks: [IncomingMessage]) throws -> [IncomingMessage] {
        let whole = chunks.flatMap(\.payload)
        let length = (whole.count + chunks.count - 1) / chunks.count
        try #require(length < chunks[0].payload.count)
        return chunks.enumerated().map { index, chunk in
            var chunk = chunk
            chunk.payload = Array(whole[(index * length)..<min(whole.count, (index + 1) * length)])
            return chunk
        }
    }

    private func expectTransaction(_ node: TestNode) throws {
        try expectState(
            node,
            is: """
                setting key='a' value='\(String(repeating: "0", count: 5000))'
                trip name='a' budget=NULL
                """)
        #expect(try node.chunks() == [])
    }

    /// The broker refused all chunks of the first send but the last, and takes smaller ones.
    @Test func p231TheLastChunkOfAnEarlierSendIsNotPutToLaterOnes() throws {
        _ = try large("a")
        let first = try lab.messages()
        let second = try cutElsewhere(first)
        let b = try lab.node("b")
        #expect(try b.receive(Array(first.suffix(1)) + second).applied == 1)
        try expectTransaction(b)
    }

    @Test func p231ChunksOfTheLaterSendReplaceThoseOfTheEarlierOne() throws {
        _ = try large("a")
        let first = try lab.messages()
        let second = try cutElsewhere(first)
        for kept in 1..<first.count {
            let b = try lab.node("b\(kept)")
            #expect(try b.receive(Array(first[..<kept]) + second[kept...] + second[..<kept]).applied == 1)
            try expectTransaction(b)
        }
    }

    /// Two copies of a store have made different transactions under one number.
    @Test func p231ChunksOfDifferentTransactionsFormNone() throws {
        _ = try large("a")
        let first = try lab.messages()
        var other = first.flatMap(\.payload)
        let place = first[0].payload.count - 1
        try #require(other[place] == UInt8(ascii: "0"))
        other[place] = UInt8(ascii: "1")
        var beginning = first[0]
        beginning.payload[place] = UInt8(ascii: "1")
        beginning.headers.removeAll { $0.name == "martlet-whole-crc32" }
        beginning.headers.append(MessageHeader("martlet-whole-crc32", CRC32.digits(other)))
        let b = try lab.node("b")
        #expect(try b.receive([beginning] + first[1...]).quarantined == 1)
        try expectState(b, is: "quarantined 1")
        #expect(try b.chunks() == [])
        #expect(try b.receive(first).applied == 1)
        #expect(try contents(b) == ["a|5000", "trip|a"])
    }
}
