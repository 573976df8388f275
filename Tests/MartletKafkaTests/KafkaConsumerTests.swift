import Foundation
import MartletKafka
import MartletSync
import MartletTestSupport
import Testing

@Suite struct KafkaConsumerTests {
    @Test func lostConnectionIsReportedAndReadingResumes() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        let bus = try KafkaBus(.test(broker))
        try BusSession.send(BusSession.messages(keys: 1, each: 5), to: bus)
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        try consumer.assign([PartitionPosition(partition: 0, offset: 0)])
        #expect(try BusSession.read(consumer, count: 5).count == 5)
        try broker.setDown(true)
        let elapsed = try ContinuousClock().measure {
            // Longer than the test may take: the event itself must end the poll.
            while try !consumer.poll(maxCount: 10, timeout: BusContract.deadline * 10).events.contains(where: {
                if case .disconnected(let reason) = $0 { !reason.isEmpty } else { false }
            }) {}
        }
        #expect(elapsed < BusContract.deadline)
        try broker.setDown(false)
        try BusSession.send(BusSession.messages(keys: 1, each: 5), to: bus)
        #expect(try BusSession.read(consumer, count: 5).map(\.position.offset) == [5, 6, 7, 8, 9])
    }

    @Test func fetchThatFailsOutOfRangeIsNotReset() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        let bus = try KafkaBus(.test(broker))
        try BusSession.send(BusSession.messages(keys: 1, each: 5), to: bus)
        // Kafka's OFFSET_OUT_OF_RANGE: what a log truncated below the position answers.
        broker.failNext(.fetch, with: [1])
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        try consumer.assign([PartitionPosition(partition: 0, offset: 2)])
        var messages = 0
        try BusSession.waitUntil("offsetOutOfRange") { timeout in
            let batch = try consumer.poll(maxCount: 10, timeout: timeout)
            messages += batch.messages.count
            return batch.events.contains(.offsetOutOfRange(partition: 0))
        }
        #expect(try consumer.poll(maxCount: 10, timeout: .milliseconds(300)).messages.isEmpty)
        #expect(messages == 0)
        try consumer.assign([PartitionPosition(partition: 0, offset: 0)])
        #expect(try BusSession.read(consumer, count: 5).map(\.position.offset) == [0, 1, 2, 3, 4])
    }

    @Test func closingEndsAPollUnderWay() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        let consumer = try KafkaBus(.test(broker)).makeConsumer()
        try consumer.assign([PartitionPosition(partition: 0, offset: 0)])
        let (atEnd, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        // A thread of its own, since the test's may be all that the pool has.
        Thread {
            do throws(BusError) {
                while true {
                    let batch = try consumer.poll(maxCount: 1, timeout: BusContract.deadline * 10)
                    if !batch.events.isEmpty { atEnd.signal() }
                }
            } catch {
                #expect(error.code == .closed)
            }
            ended.signal()
        }.start()
        let deadline = BusContract.deadline / .seconds(1)
        #expect(atEnd.wait(timeout: .now() + deadline) == .success)
        consumer.close()
        #expect(ended.wait(timeout: .now() + deadline) == .success)
    }

    @Test func progressIsTakenWithoutWaiting() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        let bus = try KafkaBus(.test(broker))
        try BusSession.send(BusSession.messages(keys: 1, each: 5), to: bus)
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        try consumer.assign([PartitionPosition(partition: 0, offset: 0)])
        _ = try BusSession.read(consumer, count: 5)
        let returned = DispatchSemaphore(value: 0)
        // No request is answered any more: whoever waits for one waits for a second at least, each time.
        try broker.setRoundTrip(.seconds(600))
        Thread {
            for _ in 0..<100 { consumer.publishProgress([PartitionPosition(partition: 0, offset: 5)]) }
            returned.signal()
        }.start()
        #expect(returned.wait(timeout: .now() + BusContract.deadline / .seconds(1)) == .success)
    }
}
