import MartletCore
import MartletIngest
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// The rows are those of the source, whenever a node is killed, and however many nodes ingest.
@Suite(.timeLimit(.minutes(5))) struct IngestRecoveryTests {
    /// Writes a record, and what belongs to it.
    private typealias Step = @Sendable (SourceTopic, TestNode) throws -> Void

    private static let steps: [Step] = [
        { source, _ in try source.send("r", key: #"{"id":1}"#, after: #"{"id":1,"name":"a","stock":1}"#) },
        { source, _ in try source.send("r", key: #"{"id":2}"#, after: #"{"id":2,"name":"b","stock":2}"#) },
        { source, _ in
            try source.send(
                "u", key: #"{"id":1}"#, before: #"{"id":1,"name":"a","stock":1}"#,
                after: #"{"id":1,"name":"A","stock":1}"#)
        },
        { _, device in try device.write("UPDATE product SET stock = 50 WHERE id = 1") },
        { source, _ in try source.send("d", key: #"{"id":2}"#, before: #"{"id":2,"name":"b","stock":2}"#) },
        { _, device in try device.write("INSERT OR REPLACE INTO product VALUES (2, 'device', 0, 0)") },
        { source, _ in try source.send(#"{"id":2}"#, nil) },
        { source, _ in try source.send("c", key: #"{"id":3}"#, after: #"{"id":3,"name":"c","stock":3}"#) },
        // The source's clock is set back.
        { source, _ in
            try source.send(
                "u", key: #"{"id":3}"#, before: #"{"id":3,"name":"c","stock":3}"#,
                after: #"{"id":3,"name":"c","stock":4}"#, at: SQLiteClock.milliseconds - 100_000)
        },
        // It comes again.
        { source, _ in
            try source.send(
                "u", key: #"{"id":3}"#, before: #"{"id":3,"name":"c","stock":3}"#,
                after: #"{"id":3,"name":"old","stock":0}"#, at: SQLiteClock.milliseconds - 200_000, lsn: 1001)
        },
        { source, _ in try source.sendDelete(key: #"{"id":1}"#, before: #"{"id":1,"name":"A","stock":1}"#) },
    ]

    private static let rows = ["2|device|0.0|0", "3|c|NULL|4"]

    /// A process that is killed leaves nothing but its store.
    @Test(arguments: 0...steps.count) func aNodeThatIsKilledAfterAnyRecordGoesOn(kill: Int) throws {
        let lab = try IngestLab()
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        let source = lab.topic()
        for (index, step) in Self.steps.enumerated() {
            if index == kill { try a.restart() }
            try step(source, b)
            try lab.ingest(a)
            // What b writes must not be later than what it has not seen.
            try exchange([a, b])
        }
        if kill == Self.steps.count { try a.restart() }
        try lab.ingest(a)
        try exchange([a, b])
        for node in [a, b] { #expect(try node.rows("SELECT * FROM product ORDER BY id") == Self.rows) }
    }

    /// Nothing of it is merged, or all of it.
    @Test func aBatchThatTheStoreRefusesIsReadAgain() throws {
        let lab = try IngestLab()
        let a = try lab.node("a") { $0.readerPatience = .zero }
        let source = lab.topic()
        for id in 1...3 { try source.send("c", key: #"{"id":\#(id)}"#, after: #"{"id":\#(id),"name":"x"}"#) }
        let ingester = try lab.ingester(a)
        try StoreReplacement.moveAway(a.path, replacing: true)
        let error = #expect(throws: StoreError.self) { _ = try ingester.runUntilCaughtUp() }
        #expect(error?.code == .moved)
        ingester.run()
        #expect(ingester.lastFailure?.code == .moved)
    }

    @Test func nodesThatIngestTheSameTopicAgreeAndSeeNoConflict() throws {
        let lab = try IngestLab()
        let nodes = [try lab.node("a"), try lab.node("b"), try lab.node("c")]
        let source = lab.topic()
        for (index, step) in Self.steps.enumerated() {
            try step(source, nodes[2])
            // Each of them at another time, and in other batches.
            if index % 2 == 0 { try lab.ingest(nodes[0]) }
            if index % 3 == 0 { try lab.ingest(nodes[1]) }
            try exchange(nodes)
        }
        for node in nodes.prefix(2) { try lab.ingest(node) }
        try exchange(nodes)
        for node in nodes { #expect(try node.rows("SELECT * FROM product ORDER BY id") == Self.rows) }
        // Only what the device has set was overruled.
        for node in nodes.prefix(2) {
            #expect(try node.store.conflicts().allSatisfy { $0.value == .integer(50) || $0.kind == .deleted })
        }
    }
}
