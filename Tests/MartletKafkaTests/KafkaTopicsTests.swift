import MartletKafka
import MartletSync
import MartletTestSupport
import Testing

/// One producer for several topics.
@Suite(.timeLimit(.minutes(5))) struct KafkaTopicsTests {
    @Test func aMessageMayNameAnotherTopic() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1, "other": 1])
        let bus = try KafkaBus(.test(broker))
        var other = KafkaConfiguration.test(broker)
        other.topic = "other"
        var messages = [
            OutgoingMessage(key: [1], headers: [], payload: [1], tag: 1),
            OutgoingMessage(key: [1], headers: [MessageHeader("h", "v")], payload: [2], tag: 2),
            OutgoingMessage(nullFor: [1], headers: [], tag: 3),
        ]
        messages[1].topic = "other"
        messages[2].topic = "other"
        let acknowledged = try BusSession.send(messages, to: bus)
        #expect(try acknowledged.map { try $0.result.get().offset }.sorted() == [0, 0, 1])
        #expect(try BusSession.readAll(from: bus, count: 1).map(\.payload) == [[1]])
        let read = try BusSession.readAll(from: KafkaBus(other), count: 2)
        #expect(read.map(\.payload) == [[2], []] && read.map(\.isNull) == [false, true])
        #expect(read[0].headers == [MessageHeader("h", "v")])
    }
}
