import MartletSync
import MartletTestSupport
import Synchronization
import Testing

@testable import MartletKafka

/// The handover to a client with long fetch waits once a consumer has caught up.
@Suite struct ReadingClientsTests {
    /// How long the embedded broker holds fetches, with data or without: short enough for a test.
    private static let wait = Duration.milliseconds(500)

    private func consumer(_ bus: KafkaBus, partitions: Int32, from offset: Int64 = 0) throws -> KafkaConsumer {
        let consumer = try bus.consumer(pause: .zero)
        try consumer.assign((0..<partitions).map { PartitionPosition(partition: $0, offset: offset) })
        return consumer
    }

    /// - Parameter areImmediate: whether the broker is known to answer at once; the embedded one holds every fetch.
    private func bus(
        _ broker: EmbeddedBroker, idle: Duration = wait, areImmediate: Bool? = true
    ) throws -> KafkaBus {
        var configuration = KafkaConfiguration.test(broker)
        configuration.idleFetchWaitMax = idle
        let bus = try KafkaBus(configuration)
        bus.wakeups.areImmediate = areImmediate
        return bus
    }

    private func handOver(_ consumer: KafkaConsumer) throws {
        try BusSession.waitUntil("the patient client") { _ in
            let batch = try consumer.poll(maxCount: 10, timeout: .milliseconds(20))
            #expect(batch.messages.isEmpty)
            return consumer.isPatient
        }
    }

    @Test func messagesDuringAHandoverArriveOnceAndInOrder() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 4])
        let bus = try bus(broker)
        let consumer = try consumer(bus, partitions: 4)
        defer { consumer.close() }
        let box = AcknowledgementBox()
        let producer = try bus.makeProducer { box.add($0) }
        defer { producer.close() }
        var sent = 0
        var read: [UInt64] = []
        var last: [Int32: Int64] = [:]
        var pollsAfterwards = 0
        try BusSession.waitUntil("messages before, meanwhile and afterwards") { _ in
            for _ in 0..<3 {
                let key = Array("key-\(sent % 7)".utf8)
                try producer.send(
                    OutgoingMessage(key: key, headers: [], payload: Array("\(sent)".utf8), tag: UInt64(sent)))
                sent += 1
            }
            for message in try consumer.poll(maxCount: 5, timeout: .milliseconds(5)).messages {
                let (partition, offset) = (message.position.partition, message.position.offset)
                #expect(offset == last[partition, default: -1] + 1)
                last[partition] = offset
                read.append(try #require(BusSession.number(of: message.payload)))
            }
            if consumer.isPatient { pollsAfterwards += 1 }
            return pollsAfterwards > 20
        }
        let rest = sent - read.count
        for message in try BusSession.read(consumer, count: rest) {
            let (partition, offset) = (message.position.partition, message.position.offset)
            #expect(offset == last[partition, default: -1] + 1)
            last[partition] = offset
            read.append(try #require(BusSession.number(of: message.payload)))
        }
        #expect(read.sorted() == (0..<UInt64(sent)).map { $0 })
    }

    @Test func theEndIsKnownAtOnceWhileTheBrokerHoldsAFetch() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 2])
        let bus = try bus(broker)
        let consumer = try consumer(bus, partitions: 2)
        defer { consumer.close() }
        try handOver(consumer)
        try BusSession.send(BusSession.messages(keys: 1, each: 3), to: bus)
        var batch = ConsumerBatch()
        try BusSession.waitUntil("three messages") { timeout in
            let more = try consumer.poll(maxCount: 10, timeout: timeout)
            batch.messages += more.messages
            // The event arrives together with the last message, not after it.
            if !more.messages.isEmpty { batch.events = more.events }
            return batch.messages.count == 3
        }
        let partition = try #require(batch.messages.last?.position.partition)
        #expect(batch.events == [.endOfPartition(PartitionPosition(partition: partition, offset: 3))])
    }

    /// On the same connection the response would wait for the fetch that the broker holds.
    @Test func aNewAssignmentIsReadAtOnce() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        let bus = try bus(broker, idle: .seconds(2))
        try BusSession.send(BusSession.messages(keys: 1, each: 5), to: bus)
        let consumer = try consumer(bus, partitions: 1, from: 5)
        defer { consumer.close() }
        try handOver(consumer)
        try consumer.assign([PartitionPosition(partition: 0, offset: 0)])
        #expect(!consumer.isPatient)
        #expect(try BusSession.read(consumer, count: 5).map(\.position.offset) == [0, 1, 2, 3, 4])
    }

    /// The broker would answer it after the fetch that it holds.
    @Test func noRequestWaitsForAHeldFetch() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 3])
        let bus = try bus(broker)
        let made = Counter()
        let consumer = KafkaConsumer(
            try clients(bus, made), topic: "martlet", maxPayloadBytes: .max, offsets: nil
        ) { () throws(BusError) in throw BusError(.other, "no batch is damaged") }
        defer { consumer.close() }
        try consumer.assign((0..<3).map { PartitionPosition(partition: $0, offset: 0) })
        #expect(try consumer.partitionCount(timeout: BusContract.deadline) == 3)
        #expect(try consumer.watermarks(partition: 1, timeout: BusContract.deadline).high == 0)
        #expect(made.count == 1)
        try handOver(consumer)
        #expect(made.count == 2)
        #expect(try consumer.partitionCount(timeout: .zero) == 3)
        #expect(made.count == 2)
        #expect(try consumer.watermarks(partition: 1, timeout: BusContract.deadline).high == 0)
        #expect(made.count == 3)
        // Nor does a new assignment wait.
        try consumer.assign([PartitionPosition(partition: 0, offset: 0)])
        #expect(made.count == 4)
        try consumer.assign([PartitionPosition(partition: 1, offset: 0)])
        #expect(made.count == 4)
    }

    @Test func theStatisticsTellThePartitionCount() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 3])
        var configuration = KafkaConfiguration.test(broker)
        configuration.idleFetchWaitMax = Self.wait
        configuration.statisticsInterval = .milliseconds(20)
        let client = try KafkaBus(configuration).makeClient(.consumer, role: "consumer", isPatient: true)
        #expect(client.context.partitionCount == nil)
        try client.begin([PartitionPosition(partition: 0, offset: 0)])
        try BusSession.waitUntil("statistics") { _ in
            client.serve()
            return client.context.partitionCount == 3
        }
    }

    private func clients(_ bus: KafkaBus, _ made: Counter) throws -> ReadingClients {
        let wake = WakeSignal()
        return try ReadingClients(wake: wake, handsOver: true, pause: .zero, wakeups: bus.wakeups) {
            isPatient throws(BusError) in
            made.add()
            return try bus.makeClient(.consumer, role: "consumer", wake: wake, isPatient: isPatient)
        }
    }

    /// A successor that can't read doesn't affect the current client.
    @Test func aFailingSuccessorIsReleased() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        let made = Counter()
        var clients = try clients(try bus(broker), made)
        let place = PartitionPosition(partition: 0, offset: 0)
        try clients.read([place])
        #expect(clients.note([.endOfPartition(place)], positions: [0: 0], touched: []).isEmpty)
        _ = clients.note([], positions: [0: 0], touched: [])
        let before = clients.client
        let successor = try #require(clients.successor)
        #expect(clients.hear(.init(isSound: false)) === successor)
        #expect(clients.client === before)
        #expect(clients.successor == nil)
        // The next attempt doesn't follow at once.
        _ = clients.note([], positions: [0: 0], touched: [])
        #expect(clients.successor == nil)
        #expect(made.count == 2)
    }

    // MARK: Whether the brokers answer at once

    private static let place = PartitionPosition(partition: 0, offset: 0)

    /// Clients whose successor waits for its takeover, and has just reported something about its partition.
    private func onTrial(_ bus: KafkaBus, at now: ContinuousClock.Instant) throws -> ReadingClients {
        var clients = try clients(bus, Counter())
        try clients.read([Self.place])
        for _ in 0..<2 { _ = clients.note([.endOfPartition(Self.place)], positions: [0: 0], touched: []) }
        #expect(clients.successor != nil)
        #expect(clients.hear(.init(partitions: [0]), now: now) == nil)
        return clients
    }

    private struct Look {
        var seconds: Double
        var heard: ReadingClients.Heard
    }

    @Test(
        arguments: [
            ("both have it", [Look(seconds: 9, heard: .init(messages: [place], messagesOfSuccessor: [place]))], true),
            (
                "the second one soon",
                [
                    Look(seconds: 9, heard: .init(messages: [place])),
                    Look(seconds: 9.05, heard: .init(messagesOfSuccessor: [place], waited: .milliseconds(50))),
                ], true
            ),
            (
                "the first one soon",
                [
                    Look(seconds: 9, heard: .init(messagesOfSuccessor: [place])),
                    Look(seconds: 9.05, heard: .init(messages: [place], waited: .milliseconds(50))),
                ], true
            ),
            (
                "the second one not when it was waited for",
                [
                    Look(seconds: 9, heard: .init(messages: [place])),
                    Look(seconds: 10, heard: .init(waited: .seconds(1))),
                    Look(seconds: 11.2, heard: .init(waited: .seconds(1.2))),
                ], false
            ),
            (
                "nobody has looked for long",
                [
                    Look(seconds: 9, heard: .init(messages: [place])),
                    Look(seconds: 50, heard: .init(messagesOfSuccessor: [place])),
                ], nil
            ),
        ] as [(String, [Look], Bool?)])
    private func theNextMessageShowsWhetherTheBrokerAnswersAtOnce(what: String, looks: [Look], areImmediate: Bool?)
        throws
    {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        let bus = try bus(broker, areImmediate: nil)
        let start = ContinuousClock.now
        var clients = try onTrial(bus, at: start)
        let successor = try #require(clients.successor)
        var released: RDClient?
        for look in looks {
            #expect(released == nil)
            released = clients.hear(look.heard, now: start + .seconds(look.seconds))
        }
        #expect(bus.wakeups.areImmediate == areImmediate)
        #expect(clients.isPatient == (areImmediate == true))
        #expect(clients.successor == nil)
        #expect((clients.client === successor) == clients.isPatient)
        #expect((released === successor) == !clients.isPatient)
    }

    @Test func inconclusiveMessagesAreIgnored() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 2])
        let bus = try bus(broker, areImmediate: nil)
        let start = ContinuousClock.now
        let other = PartitionPosition(partition: 1, offset: 0)
        var clients = try clients(bus, Counter())
        try clients.read([Self.place, other])
        for _ in 0..<2 {
            _ = clients.note(
                [.endOfPartition(Self.place), .endOfPartition(other)], positions: [0: 0, 1: 0], touched: [])
        }
        let successor = try #require(clients.successor)
        let looks = [
            // Its fetch may not have reached the broker,
            Look(seconds: 0.5, heard: .init(messages: [Self.place])),
            Look(seconds: 4, heard: .init(waited: .seconds(3))),
            // the other client is late,
            Look(seconds: 9, heard: .init(partitions: [0], messagesOfSuccessor: [Self.place])),
            Look(seconds: 12, heard: .init(waited: .seconds(3))),
            // its fetch may lack this partition.
            Look(seconds: 20, heard: .init(messages: [other])), Look(seconds: 24, heard: .init(waited: .seconds(3))),
        ]
        for look in looks { #expect(clients.hear(look.heard, now: start + .seconds(look.seconds)) == nil) }
        #expect(clients.successor === successor)
        #expect(bus.wakeups.areImmediate == nil)
        // The next message is conclusive, since the successor has reported something about the partition.
        #expect(clients.hear(.init(messages: [Self.place]), now: start + .seconds(30)) == nil)
        #expect(clients.hear(.init(waited: .seconds(3)), now: start + .seconds(33)) === successor)
        #expect(bus.wakeups.areImmediate == false)
    }

    /// While messages arrive continuously, a broker has some for each fetch.
    @Test func aStreamOfMessagesIsInconclusive() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        let bus = try bus(broker, areImmediate: nil)
        let start = ContinuousClock.now
        var clients = try onTrial(bus, at: start)
        let successor = try #require(clients.successor)
        // The first message arrives before the broker holds the fetch.
        for number in 0...ReadingClients.uselessMax {
            #expect(clients.successor === successor)
            let message = PartitionPosition(partition: 0, offset: Int64(number))
            let released = clients.hear(
                .init(messages: [message], messagesOfSuccessor: [message]), now: start + .seconds(4 + Double(number)))
            #expect((released === successor) == (number == ReadingClients.uselessMax))
        }
        #expect(bus.wakeups.areImmediate == nil)
        #expect(!clients.isPatient)
    }

    @Test func consumersShareWhatOneLearnsAboutTheBroker() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        let bus = try bus(broker, areImmediate: nil)
        let start = ContinuousClock.now
        var clients = try onTrial(bus, at: start)
        let successor = try #require(clients.successor)
        #expect(clients.hear(.init(), now: start + .seconds(9)) == nil)
        bus.wakeups.areImmediate = false
        #expect(clients.hear(.init(), now: start + .seconds(10)) === successor)
    }

    /// librdkafka's mock cluster holds each fetch to its end.
    @Test func p171ABrokerThatHoldsFetchesDespiteMessagesGetsShortWaits() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        let bus = try bus(broker, idle: .seconds(20), areImmediate: nil)
        let consumer = try consumer(bus, partitions: 1)
        defer { consumer.close() }
        try BusSession.waitUntil("the broker holds a question") { _ in
            _ = try consumer.poll(maxCount: 10, timeout: .milliseconds(20))
            return consumer.isOnTrial
        }
        #expect(!consumer.isPatient)
        #expect(bus.wakeups.areImmediate == nil)
        try BusSession.send(BusSession.messages(keys: 1, each: 1), to: bus)
        #expect(try BusSession.read(consumer, count: 1).count == 1)
        try BusSession.waitUntil("it is known") { _ in
            let batch = try consumer.poll(maxCount: 10, timeout: .milliseconds(20))
            #expect(batch.messages.isEmpty)
            return bus.wakeups.areImmediate == false
        }
        #expect(!consumer.isPatient)
        #expect(try KafkaBus(bus.configuration, besides: bus).wakeups.areImmediate == false)
    }

    @Test func noClientTakesOverWithoutALongerWait() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        var configuration = KafkaConfiguration.test(broker)
        #expect(try !KafkaBus(configuration).configuration.waitsLongerWhenIdle)
        configuration.idleFetchWaitMax = .seconds(60)
        #expect(configuration.waitsLongerWhenIdle)
        configuration.properties["fetch.wait.max.ms"] = "10"
        #expect(!configuration.waitsLongerWhenIdle)
    }
}

private final class Counter: Sendable {
    private let value = Mutex(0)
    var count: Int { value.withLock(\.self) }
    func add() { value.withLock { $0 += 1 } }
}
