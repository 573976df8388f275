import MartletCore
import MartletIngest
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Records become rows, and reach other nodes.
@Suite(.timeLimit(.minutes(5))) struct IngestTests {
    @Test func aRecordBecomesARowAndReachesOtherNodes() throws {
        let lab = try IngestLab()
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        let source = lab.topic()
        try source.send("r", key: #"{"id":1}"#, after: #"{"id":1,"name":"Nail","price":0.5,"stock":100}"#)
        try source.send("c", key: #"{"id":2}"#, after: #"{"id":2,"name":"Screw","price":1,"stock":null}"#)
        #expect(try lab.ingest(a) == 2)
        let rows = ["1|Nail|0.5|100", "2|Screw|1.0|NULL"]
        #expect(try a.rows("SELECT * FROM product") == rows)
        try exchange([a, b])
        #expect(try b.rows("SELECT * FROM product") == rows)
        try source.send(
            "u", key: #"{"id":1}"#, before: #"{"id":1,"name":"Nail","price":0.5,"stock":100}"#,
            after: #"{"id":1,"name":"Nail","price":0.75,"stock":100}"#)
        try source.sendDelete(key: #"{"id":2}"#)
        #expect(try lab.ingest(a) == 3)
        try exchange([a, b])
        for node in [a, b] { #expect(try node.rows("SELECT * FROM product") == ["1|Nail|0.75|100"]) }
        #expect(try lab.places(a) == ["pg.public.product/0 5 "])
        #expect(try lab.ingest(a) == 0)
    }

    @Test func theHistorySaysWhereRowsComeFrom() throws {
        let lab = try IngestLab()
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try lab.topic().send("c", key: #"{"id":1}"#, after: #"{"id":1,"name":"Nail"}"#)
        try lab.ingest(a)
        try exchange([a, b])
        let here = try #require(try a.store.fetchHistory().last)
        #expect(here.author == TransactionAuthor.ingest)
        #expect(here.origin?.name == "pg.public.product/0")
        #expect(here.origin?.node == NodeID(sourceTopic: "pg.public.product", partition: 0).uuid)
        let there = try #require(try b.store.fetchHistory().last)
        #expect(there.author == TransactionAuthor.sync)
        #expect(there.origin?.author == TransactionAuthor.ingest)
        #expect(there.origin?.name == "a")
    }

    /// A node enqueues all local changes first, and a stop doesn't wait for that.
    @Test func anInterruptedMergeIsNoFailureOfTheTopic() throws {
        let lab = try IngestLab()
        let node = try lab.node("a") { $0.enqueueLimits.changes = 7 }
        try lab.topic().send("c", key: #"{"id":1000}"#, after: #"{"id":1000,"name":"Nail"}"#)
        let ingester = try lab.ingester(node)
        try node.foreignWrite(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
            INSERT INTO product(id, name) SELECT i, 'n' || i FROM n
            """)
        node.engine.session.interrupt()
        #expect(throws: CancellationError.self) { try ingester.step(timeout: .milliseconds(1)) }
    }
}
