import Foundation
import Logging
import MartletKafka
import MartletSync
import MartletTestSupport
import Synchronization
import Testing

@Suite struct KafkaConsumerTests {
    /// While it reads, a consumer learns of new partitions from the statistics alone.
    @Test(arguments: [(nil, "60000"), ("0", "60000"), ("86400000", "60000"), ("1000", "1000")] as [(String?, String)])
    func p207AConsumerHasStatisticsWhateverThePropertiesSay(_ property: String?, _ interval: String) {
        var configuration = KafkaConfiguration()
        configuration.properties["statistics.interval.ms"] = property
        for isPatient in [false, true] {
            let properties = configuration.consumerProperties(isPatient: isPatient)
            #expect(properties.last { $0.name == "statistics.interval.ms" }?.value == interval)
        }
    }

    @Test func aLostConnectionIsReportedAndReadingResumes() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        let bus = try KafkaBus(.test(broker))
        try BusSession.send(BusSession.messages(keys: 1, each: 5), to: bus)
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        try consumer.assign([PartitionPosition(partition: 0, offset: 0)])
        #expect(try BusSession.read(consumer, count: 5).count == 5)
        try broker.setDown(true)
        let elapsed = try ContinuousClock().measure {
            // The timeout exceeds the test's deadline: the event itself must end the poll.
            try runUntilNothingMoves("polling without a disconnect") {
                let events = try consumer.poll(maxCount: 10, timeout: BusContract.deadline * 10).events
                return !events.contains {
                    if case .disconnected(let reason) = $0 { !reason.isEmpty } else { false }
                }
            }
        }
        #expect(elapsed < BusContract.deadline)
        try broker.setDown(false)
        try BusSession.send(BusSession.messages(keys: 1, each: 5), to: bus)
        #expect(try BusSession.read(consumer, count: 5).map(\.position.offset) == [5, 6, 7, 8, 9])
    }

    @Test func aPartitionWithoutALeaderIsNamedAndReadOnceItHasOne() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 2])
        let bus = try KafkaBus(.test(broker))
        let sent = try BusSession.send(BusSession.messages(keys: 20, each: 1), to: bus)
        let count = try sent.count { try $0.result.get().partition == 0 }
        #expect(count > 0 && count < 20)
        try broker.setLeader(nil, of: "martlet", partition: 1)
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        #expect(try consumer.partitionCount(timeout: BusContract.deadline) == 2)
        #expect(consumer.partitionsWithoutLeader == [1])
        #expect(try consumer.watermarks(partition: 0, timeout: BusContract.deadline).high == Int64(count))
        try consumer.assign((0..<2).map { PartitionPosition(partition: $0, offset: 0) })
        #expect(try BusSession.read(consumer, count: count).allSatisfy { $0.position.partition == 0 })
        try broker.setLeader(1, of: "martlet", partition: 1)
        #expect(try BusSession.read(consumer, count: 20 - count).allSatisfy { $0.position.partition == 1 })
    }

    /// A compressed batch of a few KB exceeds the client's limit once it is decompressed, with one message or several:
    /// librdkafka fails at it each time.
    @Test(arguments: [1, 5, 200]) func p55TheConsumerSkipsABatchThatIsTooLargeDecompressed(count: Int) throws {
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
        // The large message is the last: the ones before it in the batch are lost with it.
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
        // Start in the middle of the batch, like a consumer that has read up to there.
        try consumer.assign([PartitionPosition(partition: 0, offset: Int64(count))])
        // The second poll may return more.
        let found = try BusSession.read(consumer, count: 2).prefix(2)
        #expect(found.map(\.position.offset) == [Int64(count), Int64(count) + 1])
    }

    @Test(arguments: 1...40) func theSearchFindsTheEndOfABatchInFewSteps(length: Int) throws {
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

    /// `sync.applyBatchTransactions` may be any number.
    @Test func aPollMayAskForAnyNumberOfMessages() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        let memory = InMemoryBus()
        for bus in [try KafkaBus(.test(broker)), memory] as [any Bus] {
            try BusSession.send(BusSession.messages(keys: 1, each: 5), to: bus)
            let consumer = try bus.makeConsumer()
            defer { consumer.close() }
            try consumer.assign([PartitionPosition(partition: 0, offset: 2)])
            var offsets: [Int64] = []
            try BusSession.waitUntil("three messages") { timeout in
                offsets += try consumer.poll(maxCount: .max, timeout: timeout).messages.map(\.position.offset)
                return offsets.count >= 3
            }
            #expect(offsets == [2, 3, 4])
        }
    }

    /// Such as with `check.crcs: true`, if a batch was damaged on its way once.
    @Test func p206ABatchThatCanBeReadAfterAllIsNotSkipped() throws {
        var probes: [Int64] = []
        let end = try UnreadableBatch.end(from: 100) { offset throws(BusError) in
            probes.append(offset)
            return false
        }
        #expect(end == nil)
        #expect(probes == [100])
    }

    @Test func p55TheConsumerDoesNotCopyAPayloadThatIsTooLarge() throws {
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

    @Test func anOutOfRangeFetchDoesNotResetThePosition() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        let bus = try KafkaBus(.test(broker))
        try BusSession.send(BusSession.messages(keys: 1, each: 5), to: bus)
        // Kafka's OFFSET_OUT_OF_RANGE, as after a truncation of the log below the position.
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

    @Test func closingEndsARunningPoll() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        let consumer = try KafkaBus(.test(broker)).makeConsumer()
        try consumer.assign([PartitionPosition(partition: 0, offset: 0)])
        let (atEnd, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        // A thread of its own, since the pool may have no other thread than the test's.
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

    @Test func publishingProgressDoesNotWait() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        let bus = try KafkaBus(.test(broker))
        try BusSession.send(BusSession.messages(keys: 1, each: 5), to: bus)
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        try consumer.assign([PartitionPosition(partition: 0, offset: 0)])
        _ = try BusSession.read(consumer, count: 5)
        let returned = DispatchSemaphore(value: 0)
        // No request is answered any more: waiting for one would take at least a second each time.
        try broker.setRoundTrip(.seconds(600))
        Thread {
            for _ in 0..<100 { consumer.publishProgress([PartitionPosition(partition: 0, offset: 5)], of: "node") }
            returned.signal()
        }.start()
        #expect(returned.wait(timeout: .now() + BusContract.deadline / .seconds(1)) == .success)
    }

    /// Reading needs no consumer group, and a failing group for lag tools blocks no reader.
    @Test func p165AMissingRightOnTheGroupDoesNotBlockReading() throws {
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

    /// The response would arrive after the fetch that the broker holds, and delay messages that arrive meanwhile.
    @Test func p172AReadingConsumerSendsNoOtherRequestOnItsConnection() throws {
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

    /// Client errors and messages arrive in two queues; a request to the broker meanwhile must disturb neither.
    @Test func aRequestLeavesWaitingMessagesInPlace() throws {
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
