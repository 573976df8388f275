import Foundation
import Logging
import MartletSync
import MartletTestSupport
import Synchronization
import Testing

@testable import MartletKafka

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

    /// A few KB that come to more than a client takes, alone or with others in one batch: librdkafka fails at it each
    /// time.
    @Test(arguments: [1, 5, 200]) func p55ABatchThatComesToTooMuchIsPassedOver(count: Int) throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        var writing = KafkaConfiguration.test(broker)
        writing.compression = .zstd
        writing.messageMaxBytes = 2_000_000
        writing.linger = .milliseconds(300)
        writing.properties["batch.size"] = "20000000"
        var reading = KafkaConfiguration.test(broker)
        reading.messageMaxBytes = 100_000
        reading.properties = ["fetch.max.bytes": "100000", "receive.message.max.bytes": "200000"]
        func message(_ text: String) -> OutgoingMessage {
            OutgoingMessage(key: [1], headers: [MessageHeader("h", text)], payload: Array(text.utf8), tag: 0)
        }
        var bomb = message("bomb")
        bomb.payload = [UInt8](repeating: 0, count: 1_000_000)
        let writer = try KafkaBus(writing)
        try BusSession.send([message("a")], to: writer)
        // The large one last: those before it are lost with it.
        try BusSession.send((1..<count).map { message("\($0)") } + [bomb], to: writer)
        try BusSession.send([message("b")], to: writer)
        try BusSession.send([bomb], to: writer)
        try BusSession.send([message("c")], to: writer)
        let consumer = try KafkaBus(reading).makeConsumer()
        defer { consumer.close() }
        for _ in 0..<2 {
            try consumer.assign([PartitionPosition(partition: 0, offset: 0)])
            let found = try BusSession.read(consumer, count: 5)
            #expect(
                found.map { String(decoding: $0.payload, as: UTF8.self) } == ["a", "", "b", "", "c"])
            let offsets: [Int] = [0, count, count + 1, count + 2, count + 3]
            #expect(found.map { Int($0.position.offset) } == offsets)
            #expect(found.map { $0.problem != nil } == [false, true, false, true, false])
            #expect(found[1].problem?.contains("The messages of \(count) offsets, from 1 on") == true)
        }
        // In the middle of it, as who has read up to there.
        try consumer.assign([PartitionPosition(partition: 0, offset: Int64(count))])
        // What comes with the second of them may be more.
        let found = try BusSession.read(consumer, count: 2).prefix(2)
        #expect(found.map(\.position.offset) == [Int64(count), Int64(count) + 1])
    }

    @Test(arguments: 1...40) func theEndOfABatchIsFoundInAFewSteps(length: Int) throws {
        for position in 100..<Int64(100 + length) {
            var probes = 0
            let end = try UnreadableBatch.end(from: position) { offset throws(BusError) in
                probes += 1
                return offset < Int64(100 + length)
            }
            #expect(end == Int64(100 + length))
            #expect(probes <= 12)
        }
    }

    @Test func p55APayloadThatIsTooLargeIsNotCopied() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        var configuration = KafkaConfiguration.test(broker)
        configuration.maxPayloadBytes = 2000
        let bus = try KafkaBus(configuration)
        let payloads = [2000, 2001].map { [UInt8](repeating: 7, count: $0) }
        try BusSession.send(
            payloads.map { OutgoingMessage(key: [1], headers: [], payload: $0, tag: 0) }, to: bus)
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        try consumer.assign([PartitionPosition(partition: 0, offset: 0)])
        let found = try BusSession.read(consumer, count: 2)
        #expect(found.map(\.payload.count) == [2000, PayloadCut.beginningBytes])
        #expect(found.map { $0.cut?.byteCount } == [nil, 2001])
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
            for _ in 0..<100 { consumer.publishProgress([PartitionPosition(partition: 0, offset: 5)], of: "node") }
            returned.signal()
        }.start()
        #expect(returned.wait(timeout: .now() + BusContract.deadline / .seconds(1)) == .success)
    }

    /// Nobody is in a group to read, and the one for lag tools holds nobody up.
    @Test func p165AMissingRightOnTheGroupHoldsUpNothing() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        broker.failNext(.findCoordinator, with: [Int32](repeating: 30, count: 1000))
        let said = Mutex<[String]>([])
        let logger = Logger(label: "test") { _ in
            RecordingLogHandler { _, metadata in
                if let error = metadata["error"] { said.withLock { $0.append("\(error)") } }
            }
        }
        let bus = try KafkaBus(.test(broker), logger: logger)
        try BusSession.send(BusSession.messages(keys: 1, each: 5), to: bus)
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        try consumer.assign([PartitionPosition(partition: 0, offset: 0)])
        var found: [Int64] = []
        try BusSession.waitUntil("messages, and a word about the group") { _ in
            let batch = try consumer.poll(maxCount: 2, timeout: .milliseconds(20))
            found += batch.messages.map(\.position.offset)
            for event in batch.events {
                if case .error(let error) = event { Issue.record("\(error)") }
            }
            consumer.publishProgress([PartitionPosition(partition: 0, offset: Int64(found.count))], of: "NODE")
            return found.count == 5 && said.withLock { $0.contains { $0.contains("Read on group martlet.NODE") } }
        }
        #expect(found == [0, 1, 2, 3, 4])
    }

    /// An answer would come after the fetch that the broker holds, and what has come meanwhile would wait for it.
    @Test func p172WhileItReadsNothingIsAskedOnItsConnection() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        let bus = try KafkaBus(.test(broker))
        try BusSession.send(BusSession.messages(keys: 1, each: 3), to: bus)
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        #expect(consumer.knownEnd(of: 0) == nil)
        try consumer.assign([PartitionPosition(partition: 0, offset: 0)])
        #expect(try BusSession.read(consumer, count: 3).count == 3)
        try broker.setRoundTrip(.seconds(1000))
        #expect(try consumer.partitionCount(timeout: .zero) == 1)
        #expect(consumer.knownEnd(of: 0) == 3)
        try broker.setRoundTrip(.zero)
    }

    /// Errors of the client as a whole and messages come by two ways; whoever asks the broker something meanwhile must
    /// confuse neither.
    @Test func questionsBesideMessagesThatWaitLeaveThemAlone() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        let bus = try KafkaBus(.test(broker))
        try BusSession.send(BusSession.messages(keys: 1, each: 100), to: bus)
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        try consumer.assign([PartitionPosition(partition: 0, offset: 0)])
        #expect(try BusSession.read(consumer, count: 1, maxCount: 1).map(\.position.offset) == [0])
        try broker.setDown(true)
        #expect(throws: BusError.self) { try consumer.watermarks(partition: 0, timeout: .milliseconds(500)) }
        try broker.setDown(false)
        #expect(try BusSession.read(consumer, count: 99).map(\.position.offset) == Array(1...99))
    }
}
