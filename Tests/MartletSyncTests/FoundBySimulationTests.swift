import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// What the simulator found, each as short as it became.
@Suite struct FoundBySimulationTests {
    let lab: Lab

    init() throws { lab = try Lab() }

    /// Messages as the topic has them, with their checksums.
    private func sent(_ node: TestNode, _ sql: String...) throws -> [IncomingMessage] {
        for sql in sql { try node.write(sql) }
        try node.publish()
        return try messages(lab.bus)
    }

    @Test func anAnswerOfATopicThatIsGoneByNowIsNotBelieved() throws {
        let a = try lab.node("a")
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        // The answer comes, and nobody has looked at it when the topic is lost and read for the first time.
        a.publisher.step()
        lab.bus.wipe()
        try a.consume()
        let b = try lab.node("b")
        try exchange([a, b])
        #expect(try b.rows("SELECT key, value FROM setting") == ["k|1"])
    }

    @Test func aMessageThatWasCutBetweenTwoChangesIsNoTransaction() throws {
        let a = try lab.node("a")
        let message = try sent(a, "INSERT INTO setting VALUES ('k', 1), ('l', 2)")[0]
        let parts = (1..<message.payload.count).map { Array(message.payload.prefix($0)) }
        // By itself, one of them is a transaction of one change.
        #expect(parts.contains { (try? PublishedTransaction(decoding: $0))?.changes.count == 1 })
        let b = try lab.node("b")
        for part in parts {
            var cut = message
            cut.payload = part
            #expect(try b.receive([cut]).quarantined == 1)
        }
        #expect(try b.rows("SELECT count(*) FROM setting") == ["0"])
        #expect(try b.receive([message]).applied == 1)
        #expect(try b.rows("SELECT count(*) FROM setting") == ["2"])
    }

    @Test func aMessageThatWasChangedStaysInTheQuarantineUntilTheRightOneComes() throws {
        let a = try lab.node("a") { $0.encoding = .json }
        let b = try lab.node("b")
        let message = try sent(a, "INSERT INTO setting VALUES ('k', 'good')")[0]
        var changed = message
        changed.payload = Array(String(decoding: message.payload, as: UTF8.self).replacing("good", with: "evil").utf8)
        #expect(try b.receive([changed]).quarantined == 1)
        #expect(try b.engine.retryQuarantined().kept == 1)
        #expect(try b.rows("SELECT first, last FROM _martlet_gaps") == ["1|1"])
        #expect(try b.receive([message]).applied == 1)
        #expect(try b.engine.retryQuarantined().superseded == 1)
        #expect(try b.rows("SELECT value FROM setting") == ["good"])
        #expect(try b.rows("SELECT count(*) FROM _martlet_gaps") == ["0"])
    }

    @Test func aChunkThatWasChangedLeavesTheOthersWhereTheyAre() throws {
        let a = try lab.node("a") { $0.maxMessageBytes = 1000 }
        let b = try lab.node("b")
        let chunks = try sent(a, "INSERT INTO setting VALUES ('k', zeroblob(2500))")
        #expect(chunks.count == 3)
        var changed = chunks[2]
        changed.payload[0] ^= 1
        #expect(try b.receive([chunks[0], chunks[1], changed]).quarantined == 1)
        #expect(try b.receive([chunks[2]]).applied == 1)
        #expect(try b.rows("SELECT length(value) FROM setting") == ["2500"])
    }

    @Test func aNodeThatFindsItsOwnMessageChangedSendsItAgain() throws {
        let a = try lab.node("a")
        var all = try sent(a, "INSERT INTO setting VALUES ('k', 1)")
        all[0].payload.removeLast()
        lab.bus.wipe()
        try lab.send(all)
        let b = try lab.node("b")
        try exchange([a, b])
        #expect(try b.rows("SELECT key, value FROM setting") == ["k|1"])
    }

    /// A row that two nodes insert, one of them before its table has the column: the clock of its insert passes for that of the
    /// column, and the value loses that the other node gave it.
    @Test func aColumnThatIsAddedLaterTakesTheValueThatAnotherNodeInserted() throws {
        let a = try lab.node("a")
        let b = try lab.node("b")
        let alter = "ALTER TABLE setting ADD COLUMN weight INTEGER"
        try b.store.alter(sql: alter)
        try b.write("INSERT INTO setting(key, value, weight) VALUES ('k', 1, 816)")
        nextMillisecond()
        try a.write("INSERT INTO setting(key, value) VALUES ('k', 2)")
        try a.publish()
        try a.store.alter(sql: alter)
        try exchange([a, b])
        #expect(try b.rows("SELECT value, weight FROM setting") == ["2|816"])
        let found = try a.rows("SELECT value, weight FROM setting")
        withKnownIssue("the clock of the row's insert passes for that of a column that was added later") {
            #expect(found == ["2|816"])
        }
    }
}
