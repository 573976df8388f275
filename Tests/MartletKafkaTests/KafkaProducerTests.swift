import MartletKafka
import MartletSync
import MartletTestSupport
import Synchronization
import Testing

@Suite struct KafkaProducerTests {
    @Test func aFullQueueRefusesAtOnceAndAcceptsMoreLater() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        try broker.setDown(true)
        var configuration = KafkaConfiguration.test(broker)
        configuration.producerQueueBytes = 10 << 10
        let box = AcknowledgementBox()
        let producer = try KafkaBus(configuration).makeProducer { box.add($0) }
        defer { producer.close() }
        var sent = 0
        let error = #expect(throws: BusError.self) {
            while sent < 100 {
                try producer.send(message(UInt64(sent), size: 1_000))
                sent += 1
            }
        }
        #expect(error?.code == .queueFull)
        #expect(error?.isRetriable == true)
        #expect((1..<20).contains(sent))
        try broker.setDown(false)
        try box.wait(for: sent)
        try producer.send(message(100, size: 1_000))
        try box.wait(for: sent + 1)
    }

    @Test func anAcknowledgementFreesItsPlaceInTheQueue() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        var configuration = KafkaConfiguration.test(broker)
        configuration.properties["queue.buffering.max.messages"] = "1"
        let box = AcknowledgementBox()
        let sender = Mutex<(any BusProducer)?>(nil)
        let refusals = Mutex<[BusError]>([])
        // The only place in the queue is free as soon as its message is acknowledged: the callback sends the next
        // message.
        let producer = try KafkaBus(configuration).makeProducer { acknowledgement in
            do throws(BusError) {
                if acknowledgement.tag < 10 {
                    try sender.withLock { $0 }?.send(Self.message(acknowledgement.tag + 1, size: 10))
                }
            } catch {
                refusals.withLock { $0.append(error) }
            }
            box.add(acknowledgement)
        }
        defer { producer.close() }
        sender.withLock { $0 = producer }
        defer { sender.withLock { $0 = nil } }
        try producer.send(message(1, size: 10))
        var tags: [UInt64] = []
        while tags.count < 10, refusals.withLock({ $0.isEmpty }) {
            tags = try box.wait(for: tags.count + 1).map(\.tag)
        }
        #expect(refusals.withLock { $0.map(\.code) } == [])
        #expect(tags == Array(1...10))
    }

    @Test func aLargeMessageIsRefusedWithAHint() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        var configuration = KafkaConfiguration.test(broker)
        configuration.messageMaxBytes = 10_000
        let box = AcknowledgementBox()
        let producer = try KafkaBus(configuration).makeProducer { box.add($0) }
        defer { producer.close() }
        let error = #expect(throws: BusError.self) { try producer.send(message(1, size: 10_001)) }
        #expect(error?.code == .messageTooLarge)
        #expect(error?.isRetriable == false)
        #expect(error?.hint.contains("max.message.bytes") == true)
        try producer.send(message(2, size: 5_000))
        #expect(try box.wait(for: 1).map(\.tag) == [2])
    }

    @Test func closingAcknowledgesEverything() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 4])
        let box = AcknowledgementBox()
        let producer = try KafkaBus(.test(broker)).makeProducer { box.add($0) }
        try producer.send(message(0, size: 10))
        try box.wait(for: 1)
        // From here on the broker answers no request.
        try broker.setRoundTrip(.seconds(600))
        let messages = BusSession.messages(keys: 4, each: 1_000)
        for message in messages { try producer.send(message) }
        producer.close()
        let acknowledged = box.all.dropFirst()
        #expect(Set(acknowledged.map(\.tag)) == Set(messages.map(\.tag)))
        #expect(acknowledged.count == messages.count)
        #expect(acknowledged.allSatisfy { errorCode($0) == .closed })
    }

    @Test func closingAcknowledgesEverythingWithoutABroker() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 4])
        try broker.setDown(true)
        let box = AcknowledgementBox()
        let producer = try KafkaBus(.test(broker)).makeProducer { box.add($0) }
        for number in 0..<100 { try producer.send(message(UInt64(number), size: 10)) }
        #expect(producer.flush(timeout: .milliseconds(50)) == false)
        producer.close()
        #expect(box.all.count == 100)
        #expect(box.all.allSatisfy { errorCode($0) == .closed })
    }

    @Test func aSequenceErrorIsFatalAndTheNextProducerContinues() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        let bus = try KafkaBus(.test(broker))
        let box = AcknowledgementBox()
        let producer = try bus.makeProducer { box.add($0) }
        try producer.send(message(1, size: 10))
        try box.wait(for: 1)
        // Kafka's OUT_OF_ORDER_SEQUENCE_NUMBER.
        broker.failNext(.produce, with: [45])
        try producer.send(message(2, size: 10))
        #expect(errorCode(try box.wait(for: 2)[1]) == .fatal)
        let error = #expect(throws: BusError.self) { try producer.send(message(3, size: 10)) }
        #expect(error?.code == .fatal)
        #expect(error?.isRetriable == false)
        producer.close()
        try BusSession.send([message(2, size: 10), message(3, size: 10)], to: bus)
        #expect(try BusSession.readAll(from: bus, count: 3).count == 3)
    }

    @Test func messagesDroppedByAFatalErrorFailAsFatal() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        let box = AcknowledgementBox()
        let producer = try KafkaBus(oneInFlight(broker)).makeProducer { box.add($0) }
        defer { producer.close() }
        try producer.send(message(0, size: 10))
        try box.wait(for: 1)
        broker.failNext(.produce, with: [45])
        // The fatal response arrives when more messages are queued. On a busy machine it may arrive before all of
        // them are.
        try broker.setRoundTrip(.seconds(1))
        var sent = 0
        do throws(BusError) {
            while sent < 200 {
                try producer.send(message(UInt64(sent + 1), size: 10))
                sent += 1
            }
        } catch {
            #expect(error.code == .fatal)
        }
        #expect(sent > 1)
        // librdkafka drops queued messages a moment after the error. This broker doesn't check sequence numbers, and
        // stores a batch that leaves in that moment: it rightly counts as delivered.
        let codes = try box.wait(for: sent + 1).dropFirst().map { errorCode($0) }
        #expect(codes.first == .fatal)
        #expect(Set(codes.compactMap(\.self)) == [.fatal])
    }

    /// Kafka would store nothing behind the failed message. This broker doesn't check sequence numbers, and stores a
    /// batch that leaves in that moment. Still every acknowledged message is in the topic.
    @Test func messagesAcknowledgedAfterAFailedOneAreInTheTopic() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        let bus = try KafkaBus(oneInFlight(broker))
        let box = AcknowledgementBox()
        let producer = try bus.makeProducer { box.add($0) }
        defer { producer.close() }
        func numbered(_ tag: UInt64) -> OutgoingMessage {
            OutgoingMessage(key: [1], headers: [], payload: Array("\(tag)".utf8), tag: tag)
        }
        try producer.send(numbered(0))
        try box.wait(for: 1)
        // Kafka's INVALID_RECORD, which a retry can't cure.
        broker.failNext(.produce, with: [87])
        var sent = 1
        do throws(BusError) {
            while sent < 500 {
                try producer.send(numbered(UInt64(sent)))
                sent += 1
            }
        } catch {
            #expect(error.code == .fatal)
        }
        let results = try box.wait(for: sent).sorted { $0.tag < $1.tag }
        #expect(errorCode(results[0]) == nil && results.contains { errorCode($0) != nil })
        let stored = results.filter { errorCode($0) == nil }.map { Array("\($0.tag)".utf8) }
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        let count = Int(try consumer.watermarks(partition: 0, timeout: BusContract.deadline).high)
        let read = try BusSession.readAll(from: bus, count: count).map(\.payload)
        #expect(read.filter(stored.contains) == stored)
    }

    @Test func injectedErrorsKeepTheOrderOfAKey() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 3])
        let bus = try KafkaBus(oneInFlight(broker))
        let box = AcknowledgementBox()
        let producer = try bus.makeProducer { box.add($0) }
        defer { producer.close() }
        // NOT_LEADER, a lost connection, REQUEST_TIMED_OUT and NOT_ENOUGH_REPLICAS, among successful responses.
        broker.failNext(.produce, with: [0, 6, 0, -195, 0, 7, 19, 0, 6, -195, 0, 0, 19])
        let messages = BusSession.messages(keys: 5, each: 400)
        for (number, message) in messages.enumerated() {
            try producer.send(message)
            // Causes many small batches.
            if number % 50 == 0 { try box.wait(for: number / 2) }
        }
        try box.wait(for: messages.count)
        #expect(box.all.allSatisfy { errorCode($0) == nil })
        let read = try BusSession.readAll(from: bus, count: messages.count)
        for key in Set(messages.map(\.key)) {
            #expect(read.filter { $0.key == key }.map(\.payload) == messages.filter { $0.key == key }.map(\.payload))
        }
    }

    @Test func aDeliveryTimeoutFailsTheMessage() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        try broker.setDown(true)
        var configuration = KafkaConfiguration.test(broker)
        configuration.deliveryTimeout = .milliseconds(50)
        let box = AcknowledgementBox()
        let producer = try KafkaBus(configuration).makeProducer { box.add($0) }
        defer { producer.close() }
        try producer.send(message(1, size: 10))
        #expect(errorCode(try box.wait(for: 1)[0]) == .timedOut)
    }

    /// One request in flight: the mock broker doesn't check sequence numbers, and would store a batch behind a failed
    /// one.
    private func oneInFlight(_ broker: EmbeddedBroker) -> KafkaConfiguration {
        var configuration = KafkaConfiguration.test(broker)
        configuration.properties["max.in.flight"] = "1"
        return configuration
    }

    private func message(_ tag: UInt64, size: Int) -> OutgoingMessage { Self.message(tag, size: size) }

    private static func message(_ tag: UInt64, size: Int) -> OutgoingMessage {
        OutgoingMessage(key: [1], headers: [], payload: Array(repeating: 7, count: size), tag: tag)
    }

    private func errorCode(_ acknowledgement: Acknowledgement) -> BusError.Code? {
        if case .failure(let error) = acknowledgement.result { error.code } else { nil }
    }
}
