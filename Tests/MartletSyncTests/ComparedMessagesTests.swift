import MartletSync
import Testing

/// How far a topic was compared with this node's own transactions.
@Suite struct ComparedMessagesTests {
    private let compared = ComparedMessages()

    private func message(_ partition: Int32, _ offset: Int64, at time: Int64 = 1) -> IncomingMessage {
        IncomingMessage(
            position: PartitionPosition(partition: partition, offset: offset), key: [], headers: [], payload: [],
            timestamp: time, isBrokerTimestamp: true)
    }

    @Test func comparingGoesOnAtTheLastMessageOfEachPartition() {
        compared.begin("notes/2")
        #expect(compared.offset(0) == nil)
        for offset: Int64 in 4...6 { #expect(compared.note(message(0, offset))) }
        #expect(compared.note(message(1, 9)))
        compared.begin("notes/2")
        #expect(compared.offset(0) == 6)
        #expect(compared.offset(1) == 9)
        #expect(compared.note(message(0, 6)))
    }

    @Test func anotherMessageAtTheLastOffsetMeansComparingAllOfThePartition() {
        compared.begin("notes/2")
        #expect(compared.note(message(0, 6)))
        #expect(compared.note(message(1, 9)))
        #expect(!compared.note(message(0, 6, at: 2)))
        #expect(compared.offset(0) == nil)
        #expect(compared.offset(1) == 9)
    }

    @Test func anotherTopicIsComparedFromItsBeginning() {
        compared.begin("notes/2")
        #expect(compared.note(message(0, 6)))
        compared.begin("notes/3")
        #expect(compared.offset(0) == nil)
    }
}
