public import MartletSync

/// Sends to and reads from any bus, with deadlines, for tests.
public enum BusSession {
    /// Returns messages whose payload and tag are their number. They are distributed over the keys in turn.
    public static func messages(keys: Int, each: Int) -> [OutgoingMessage] {
        (0..<keys * each).map { number in
            OutgoingMessage(
                key: Array("key-\(number % keys)".utf8), headers: [MessageHeader("n", "\(number)")],
                payload: Array("\(number)".utf8), tag: UInt64(number))
        }
    }

    /// Returns the number that ``messages(keys:each:)`` put into a payload.
    public static func number(of payload: [UInt8]) -> UInt64? {
        UInt64(String(decoding: payload, as: UTF8.self))
    }

    /// Sends messages with a new producer, waits for all acknowledgements, and returns them.
    @discardableResult
    public static func send(_ messages: [OutgoingMessage], to bus: any Bus) throws -> [Acknowledgement] {
        let box = AcknowledgementBox()
        let producer = try bus.makeProducer { box.add($0) }
        defer { producer.close() }
        for message in messages {
            try producer.send(message)
        }
        guard producer.flush(timeout: BusContract.deadline) else {
            throw BusContractError("flush found messages in flight after \(BusContract.deadline)")
        }
        return box.all
    }

    /// Reads all partitions from offset 0 with a new consumer, until there are at least `count` messages.
    public static func readAll(from bus: any Bus, count: Int) throws -> [IncomingMessage] {
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        let partitions = try consumer.partitionCount(timeout: BusContract.deadline)
        try consumer.assign((0..<Int32(partitions)).map { PartitionPosition(partition: $0, offset: 0) })
        return try read(consumer, count: count)
    }

    /// Reads until there are at least `count` messages.
    public static func read(_ consumer: any BusConsumer, count: Int, maxCount: Int = 1_000) throws -> [IncomingMessage]
    {
        var messages: [IncomingMessage] = []
        try waitUntil("\(count) messages") { timeout in
            let batch = try consumer.poll(maxCount: maxCount, timeout: timeout)
            for event in batch.events {
                if case .offsetOutOfRange = event { throw BusContractError("\(event)") }
            }
            messages += batch.messages
            return messages.count >= count
        }
        return messages
    }

    /// Calls `body` with the time left, until it returns true. `body` must wait by itself.
    ///
    /// - Throws: ``BusContractError`` at the deadline.
    public static func waitUntil(_ what: String, _ body: (Duration) throws -> Bool) throws {
        let end = ContinuousClock.now + BusContract.deadline
        while true {
            let left = end - .now
            guard left > .zero else { throw BusContractError("waited \(BusContract.deadline) for \(what)") }
            if try body(left) { return }
        }
    }
}
