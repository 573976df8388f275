public import MartletSync

/// The contract of every ``/MartletBus/Bus`` implementation.
///
/// Each function is one rule. It takes a bus with an empty topic of its own, and throws ``BusContractError`` if the bus
/// breaks the rule. Nothing sleeps: every wait is for an event, with a deadline.
public enum BusContract {
    /// The maximum wait for anything that must happen.
    public static let deadline = Duration.seconds(30)

    /// A rule with its name, for parameterized tests.
    public struct Rule: Sendable, CustomStringConvertible {
        public var description: String
        public var check: @Sendable (any Bus) throws -> Void
    }

    /// All rules.
    public static let rules: [Rule] = [
        Rule(description: "a message arrives as it was sent", check: messageArrivesAsSent),
        Rule(description: "every message is acknowledged with its position", check: everyMessageIsAcknowledged),
        Rule(description: "messages with equal keys keep their order", check: equalKeysKeepOrder),
        Rule(description: "an empty key is a key", check: emptyKeyIsAKey),
        Rule(description: "no value is not an empty value", check: noValueIsNotEmpty),
        Rule(description: "reading starts at the assigned position", check: readingStartsAtPosition),
        Rule(description: "a new assignment replaces the old", check: assignmentReplaces),
        Rule(description: "a poll returns at most as many messages as asked", check: pollIsBounded),
        Rule(description: "a poll is bounded in bytes as well", check: pollIsBoundedInBytes),
        Rule(description: "large messages behind small ones don't exceed the bound", check: largeMessagesAreBounded),
        Rule(description: "a poll returns as soon as a message is there", check: pollReturnsEarly),
        Rule(description: "the end of a partition is reported", check: endIsReported),
        Rule(description: "a position beyond the end is out of range", check: positionBeyondEnd),
        Rule(description: "watermarks tell the first and the next offset", check: watermarksTell),
        Rule(description: "a closed producer refuses messages", check: closedProducerRefuses),
        Rule(description: "a closed consumer refuses calls", check: closedConsumerRefuses),
    ]

    public static func messageArrivesAsSent(_ bus: any Bus) throws {
        let sent = [
            OutgoingMessage(
                key: [1, 0, 255],
                headers: [MessageHeader("a", [0, 1, 2]), MessageHeader("b", ""), MessageHeader("c", "z")],
                payload: [0, 9, 0], tag: 7),
            OutgoingMessage(key: [1, 0, 255], headers: [], payload: [], tag: 8),
            OutgoingMessage(
                key: [1, 0, 255], headers: [MessageHeader("long header name, not inline", "v")],
                payload: Array(repeating: 5, count: 100_000), tag: 9),
        ]
        try BusSession.send(sent, to: bus)
        let read = try BusSession.readAll(from: bus, count: sent.count)
        try require(read.map(\.key) == sent.map(\.key), "keys changed")
        try require(read.map(\.payload) == sent.map(\.payload), "payloads changed")
        try require(
            read.map(\.headers) == sent.map(\.headers), "sent \(sent.map(\.headers)), read \(read.map(\.headers))")
        try require(read.allSatisfy { $0.timestamp > 0 }, "no timestamp")
    }

    public static func noValueIsNotEmpty(_ bus: any Bus) throws {
        let sent = [
            OutgoingMessage(key: [1], headers: [], payload: [], tag: 1),
            OutgoingMessage(nullFor: [1], headers: [MessageHeader("a", "b")], tag: 2),
            OutgoingMessage(key: [1], headers: [], payload: [7], tag: 3),
        ]
        try BusSession.send(sent, to: bus)
        let read = try BusSession.readAll(from: bus, count: sent.count)
        try require(read.map(\.isNull) == [false, true, false], "null values: \(read.map(\.isNull))")
        try require(read.map(\.payload) == [[], [], [7]], "payloads changed")
        try require(read.map(\.headers) == sent.map(\.headers), "headers changed")
    }

    public static func everyMessageIsAcknowledged(_ bus: any Bus) throws {
        let messages = BusSession.messages(keys: 5, each: 40)
        let acknowledged = try BusSession.send(messages, to: bus)
        try require(acknowledged.count == messages.count, "\(acknowledged.count) of \(messages.count) acknowledged")
        try require(Set(acknowledged.map(\.tag)) == Set(messages.map(\.tag)), "tags changed")
        var positions: [PartitionPosition: UInt64] = [:]
        for acknowledgement in acknowledged {
            positions[try acknowledgement.result.get()] = acknowledgement.tag
        }
        try require(positions.count == messages.count, "two messages have one position")
        for message in try BusSession.readAll(from: bus, count: messages.count) {
            try require(
                positions[message.position] == BusSession.number(of: message.payload), "wrong position acknowledged")
        }
    }

    public static func equalKeysKeepOrder(_ bus: any Bus) throws {
        let messages = BusSession.messages(keys: 7, each: 100)
        try BusSession.send(messages, to: bus)
        let read = try BusSession.readAll(from: bus, count: messages.count)
        for key in Set(messages.map(\.key)) {
            let expected = messages.filter { $0.key == key }.map(\.payload)
            let found = read.filter { $0.key == key }
            try require(found.map(\.payload) == expected, "the messages of key \(key) changed order")
            try require(Set(found.map(\.position.partition)).count == 1, "one key in two partitions")
            let offsets = found.map(\.position.offset)
            try require(offsets == offsets.sorted(), "offsets do not ascend")
        }
    }

    public static func emptyKeyIsAKey(_ bus: any Bus) throws {
        let messages = (0..<20).map { OutgoingMessage(key: [], headers: [], payload: [$0], tag: UInt64($0)) }
        let positions = try BusSession.send(messages, to: bus).map { try $0.result.get() }
        try require(Set(positions.map(\.partition)).count == 1, "one key in several partitions")
        try require(
            try BusSession.readAll(from: bus, count: 20).map(\.payload) == messages.map(\.payload), "order changed")
    }

    public static func readingStartsAtPosition(_ bus: any Bus) throws {
        let positions = try sendToOnePartition(bus, count: 10)
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        try consumer.assign([positions[6]])
        let read = try BusSession.read(consumer, count: 4)
        try require(read.map(\.position) == Array(positions[6...]), "read \(read.map(\.position))")
    }

    public static func assignmentReplaces(_ bus: any Bus) throws {
        let positions = try sendToOnePartition(bus, count: 20)
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        try consumer.assign([positions[0]])
        _ = try BusSession.read(consumer, count: 1, maxCount: 1)
        try consumer.assign([positions[15]])
        let read = try BusSession.read(consumer, count: 5)
        try require(read.map(\.position) == Array(positions[15...]), "read \(read.map(\.position.offset))")
    }

    public static func pollIsBounded(_ bus: any Bus) throws {
        let positions = try sendToOnePartition(bus, count: 30)
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        try consumer.assign([positions[0]])
        var count = 0
        try BusSession.waitUntil("30 messages") { timeout in
            let batch = try consumer.poll(maxCount: 4, timeout: timeout)
            try require(batch.messages.count <= 4, "\(batch.messages.count) messages in a batch of 4")
            count += batch.messages.count
            return count == 30
        }
    }

    public static func pollIsBoundedInBytes(_ bus: any Bus) throws {
        let sent = (0..<40).map {
            OutgoingMessage(key: [1], headers: [], payload: Array(repeating: 7, count: 1_000), tag: UInt64($0))
        }
        let positions = try BusSession.send(sent, to: bus).map { try $0.result.get() }.sorted { $0.offset < $1.offset }
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        for (maxBytes, most) in [(1, 1), (2_500, 3), (Int.max, 40)] {
            try consumer.assign([positions[0]])
            var offsets: [Int64] = []
            try BusSession.waitUntil("40 messages") { timeout in
                let batch = try consumer.poll(maxCount: 1_000, maxBytes: maxBytes, timeout: timeout)
                try require(
                    batch.messages.count <= most, "\(batch.messages.count) messages of 1000 bytes for \(maxBytes) bytes"
                )
                offsets += batch.messages.map(\.position.offset)
                return offsets.count >= 40
            }
            try require(offsets == positions.map(\.offset), "read \(offsets)")
        }
    }

    public static func largeMessagesAreBounded(_ bus: any Bus) throws {
        let sent = (0..<64).map {
            OutgoingMessage(
                key: [1], headers: [], payload: Array(repeating: 7, count: $0 < 32 ? 10 : 10_000), tag: UInt64($0))
        }
        let positions = try BusSession.send(sent, to: bus).map { try $0.result.get() }.sorted { $0.offset < $1.offset }
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        try consumer.assign([positions[0]])
        var offsets: [Int64] = []
        try BusSession.waitUntil("64 messages") { timeout in
            let batch = try consumer.poll(maxCount: 1_000, maxBytes: 15_000, timeout: timeout)
            let before = batch.messages.dropLast().reduce(0) { $0 + $1.payload.count }
            try require(before < 15_000, "\(batch.messages.count) messages; \(before) bytes before the last")
            offsets += batch.messages.map(\.position.offset)
            return offsets.count >= 64
        }
        try require(offsets == positions.map(\.offset), "read \(offsets)")
    }

    public static func pollReturnsEarly(_ bus: any Bus) throws {
        let position = try sendToOnePartition(bus, count: 1)[0]
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        try consumer.assign([position])
        let elapsed = try ContinuousClock().measure {
            try runUntilNothingMoves("polling without a message") {
                try consumer.poll(maxCount: 1_000, timeout: deadline * 10).messages.isEmpty
            }
        }
        try require(elapsed < deadline, "a poll with one message waited for more")
    }

    public static func endIsReported(_ bus: any Bus) throws {
        let positions = try sendToOnePartition(bus, count: 3)
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        try consumer.assign([positions[0]])
        let end = PartitionPosition(partition: positions[0].partition, offset: positions[2].offset + 1)
        var count = 0
        try BusSession.waitUntil("the end of the partition") { timeout in
            let batch = try consumer.poll(maxCount: 10, timeout: timeout)
            count += batch.messages.count
            guard batch.events.contains(.endOfPartition(end)) else { return false }
            try require(count == 3, "the end came before the messages")
            return true
        }
    }

    public static func positionBeyondEnd(_ bus: any Bus) throws {
        let last = try sendToOnePartition(bus, count: 3)[2]
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        try consumer.assign([PartitionPosition(partition: last.partition, offset: last.offset + 1_000)])
        try BusSession.waitUntil("offsetOutOfRange") { timeout in
            let batch = try consumer.poll(maxCount: 10, timeout: timeout)
            try require(batch.messages.isEmpty, "the position was reset silently")
            return batch.events.contains(.offsetOutOfRange(partition: last.partition))
        }
        // The position stays lost until it is assigned again, whatever arrives.
        let next = try sendToOnePartition(bus, count: 1)[0]
        let silence = try consumer.poll(maxCount: 10, timeout: .milliseconds(300))
        try require(silence.messages.isEmpty, "the position was reset silently")
        try consumer.assign([next])
        try require(
            try BusSession.read(consumer, count: 1).map(\.position) == [next], "not readable when assigned anew")
    }

    public static func watermarksTell(_ bus: any Bus) throws {
        let positions = try sendToOnePartition(bus, count: 3)
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        let watermarks = try consumer.watermarks(partition: positions[0].partition, timeout: deadline)
        try require(
            watermarks == Watermarks(low: positions[0].offset, high: positions[2].offset + 1), "found \(watermarks)")
    }

    public static func closedProducerRefuses(_ bus: any Bus) throws {
        let producer = try bus.makeProducer { _ in }
        producer.close()
        producer.close()
        try requireError(.closed) { () throws(BusError) in
            try producer.send(OutgoingMessage(key: [], headers: [], payload: [], tag: 0))
        }
        try require(producer.flush(timeout: .seconds(1)), "something is in flight after close")
    }

    public static func closedConsumerRefuses(_ bus: any Bus) throws {
        let consumer = try bus.makeConsumer()
        consumer.close()
        consumer.close()
        consumer.publishProgress([PartitionPosition(partition: 0, offset: 0)], of: "node")
        try requireError(.closed) { () throws(BusError) in try consumer.assign([]) }
        try requireError(.closed) { () throws(BusError) in _ = try consumer.poll(maxCount: 1, timeout: .zero) }
        try requireError(.closed) { () throws(BusError) in _ = try consumer.watermarks(partition: 0, timeout: .zero) }
    }

    private static func sendToOnePartition(_ bus: any Bus, count: Int) throws -> [PartitionPosition] {
        try BusSession.send(BusSession.messages(keys: 1, each: count), to: bus)
            .map { try $0.result.get() }
            .sorted { $0.offset < $1.offset }
    }

    private static func require(_ condition: Bool, _ what: @autoclosure () -> String) throws {
        if !condition { throw BusContractError(what()) }
    }

    private static func requireError(_ code: BusError.Code, _ body: () throws(BusError) -> Void) throws {
        do throws(BusError) {
            try body()
        } catch {
            return try require(error.code == code, "threw \(error) instead of \(code.rawValue)")
        }
        throw BusContractError("threw nothing instead of \(code.rawValue)")
    }
}
