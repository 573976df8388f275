import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Messages without a value: another program empties a compacted topic with them.
@Suite(.timeLimit(.minutes(5))) struct NullMessageTests {
    @Test func aMessageWithoutAValueStopsNobody() throws {
        let directory = try TemporaryDirectory()
        let bus = InMemoryBus(topic: "t")
        let schema = "CREATE TABLE setting(key TEXT PRIMARY KEY NOT NULL, value)"
        let a = try TestNode("a", bus: bus, directory: directory, schema: schema, attach: AttachRequest())
        let b = try TestNode("b", bus: bus, directory: directory, schema: schema, attach: AttachRequest())
        try a.write("INSERT INTO setting VALUES ('first', 1)")
        try a.publish()
        let reader = try bus.makeConsumer()
        try reader.assign([PartitionPosition(partition: 0, offset: 0)])
        let first = try #require(try reader.poll(maxCount: 1, timeout: .seconds(5)).messages.first)
        reader.close()
        let producer = try bus.makeProducer { _ in }
        let others: [[MessageHeader]] = [
            [], first.headers, [MessageHeader("other", "header")], Array(first.headers.dropLast()),
        ]
        for headers in others {
            try producer.send(OutgoingMessage(nullFor: first.key, headers: headers, tag: 0))
        }
        producer.close()
        try a.write("INSERT INTO setting VALUES ('second', 2)")
        try a.publish()
        try b.consume()
        #expect(try b.rows("SELECT key FROM setting ORDER BY key") == ["first", "second"])
    }
}
