import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Topics that retain less than a node publishes.
@Suite struct ShortTopicTests {
    let lab: Lab
    let bus: ShortBus

    init() throws {
        lab = try Lab()
        bus = ShortBus(inner: lab.bus, limit: 10)
    }

    private func node(_ name: String) throws -> TestNode {
        try lab.node(name, bus: bus) {
            $0.maxMessageBytes = 1000
            $0.republishPauses = [.zero, .zero, .zero]
        }
    }

    /// The end of the log, which is the number of messages ever sent.
    private func sent() throws -> Int64 {
        let consumer = try lab.bus.makeConsumer()
        defer { consumer.close() }
        return try consumer.watermarks(partition: 0, timeout: .seconds(1)).high
    }

    private static let large = "INSERT INTO setting VALUES ('large', hex(zeroblob(20000)))"

    @Test func p59ATransactionThatTheTopicDoesNotKeepIsNotSentForever() throws {
        let a = try node("a")
        let b = try node("b")
        try a.write("INSERT INTO setting VALUES ('first', 1)")
        try exchange([a, b])
        try a.write(Self.large)
        try a.write("INSERT INTO setting VALUES ('behind', 2)")
        for _ in 0..<20 { try exchange([a, b]) }
        let before = try sent()
        for _ in 0..<20 { try exchange([a, b]) }
        #expect(try sent() == before)
        // Some forty chunks, sent once and then three more times.
        #expect(before < 200)
        // Later transactions arrive, including new ones.
        try a.write("INSERT INTO setting VALUES ('now', 3)")
        try b.write("INSERT INTO setting VALUES ('of b', 4)")
        for _ in 0..<3 { try exchange([a, b]) }
        #expect(try b.rows("SELECT key FROM setting ORDER BY key") == ["behind", "first", "now", "of b"])
        #expect(try a.rows("SELECT count(*) FROM setting") == ["5"])

        let status = try SyncStatus.read(a.store)
        #expect(status.unkept.map(\.sequences).contains { $0.contains(2) })
        #expect(status.unkept.reduce(0) { $0 + $1.bytes } > 40000)
        #expect(try SyncStatus.read(b.store).unkept.isEmpty)
        // A restart doesn't begin again.
        try a.restart()
        for _ in 0..<3 { try exchange([a, b]) }
        let afterwards = try sent()
        for _ in 0..<5 { try exchange([a, b]) }
        #expect(try sent() == afterwards)
    }

    @Test func p59ManySmallTransactionsThatTheTopicDoesNotKeepAreNotSentForever() throws {
        let a = try node("a")
        let b = try node("b")
        for number in 1...50 { try a.write("INSERT INTO setting VALUES ('k\(number)', \(number))") }
        for _ in 0..<20 { try exchange([a, b]) }
        let before = try sent()
        for _ in 0..<20 { try exchange([a, b]) }
        #expect(try sent() == before)
        try a.write("INSERT INTO setting VALUES ('now', 3)")
        try exchange([a, b])
        #expect(try b.rows("SELECT count(*) FROM setting WHERE key = 'now'") == ["1"])
    }

    @Test func p59AForkPublishesWhatTheTopicDidNotKeep() throws {
        let a = try node("a")
        try a.write("INSERT INTO setting VALUES ('first', 1)")
        try a.publish()
        try a.consume()
        try a.write(Self.large)
        for _ in 0..<20 { try exchange([a]) }
        #expect(try SyncStatus.read(a.store).unkept.map(\.sequences).contains { $0.contains(2) })
        lab.bus.wipe()
        #expect(try a.outbox().contains { $0.sequence == 2 })
        try a.engine.fork()
        let entries = try a.outbox()
        let sizes = try a.store.read { db in try entries.map { try $0.payload(db).count } }
        #expect(sizes.count { $0 > 40_000 } == 1)
        #expect(try OwnCount(a.engine.session).unkept() == [])
    }

    @Test func p59ARecreatedTopicGetsEverythingAgain() throws {
        let a = try node("a")
        try a.write(Self.large)
        for _ in 0..<20 { try exchange([a]) }
        #expect(try !SyncStatus.read(a.store).unkept.isEmpty)
        // A topic with another number of partitions is another topic.
        lab.bus.wipe(partitionCount: 2)
        try a.consume()
        #expect(try SyncStatus.read(a.store).unkept.isEmpty)
    }
}
