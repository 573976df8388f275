import MartletCore

/// An ordered, partitioned, persistent log of messages: the transport that nodes meet on.
///
/// The sync engine is written against this protocol alone. `MartletKafka` implements it on librdkafka, and
/// ``InMemoryBus`` implements it for tests and single-process use. One contract suite runs against every
/// implementation.
///
/// All calls are blocking, bounded by their timeout, and meant for a thread of the caller's own.
public protocol Bus: Sendable {
    /// The topic this bus reads and writes.
    var topic: String { get }

    /// Makes an idempotent producer.
    ///
    /// - Parameter acknowledge: called once for every message accepted by ``BusProducer/send(_:)``, on a thread of the
    ///   bus, in no guaranteed order. It must not block and must not call back into the producer.
    func makeProducer(
        acknowledge: @escaping @Sendable (Acknowledgement) -> Void
    ) throws(BusError) -> any BusProducer

    /// Makes an idempotent producer with a limit for the size of its batches.
    ///
    /// - Parameter maxBatchBytes: the maximum size of a batch of messages, in bytes before compression. A single larger
    ///   message is sent alone. Nil for the bus's own choice.
    func makeProducer(
        maxBatchBytes: Int?, acknowledge: @escaping @Sendable (Acknowledgement) -> Void
    ) throws(BusError) -> any BusProducer

    /// Returns the largest batch of messages that the topic accepts, in bytes as transmitted. Returns nil if the broker
    /// does not report it.
    ///
    /// Blocks for at most `timeout`.
    /// - Throws: ``BusError`` if the broker can't be reached, or doesn't let this user ask.
    func batchLimit(timeout: Duration) throws(BusError) -> Int?

    /// Makes a consumer that reads the partitions given to ``BusConsumer/assign(_:)``.
    func makeConsumer() throws(BusError) -> any BusConsumer
}

/// Defaults for a bus without size limits.
extension Bus {
    public func makeProducer(
        maxBatchBytes: Int?, acknowledge: @escaping @Sendable (Acknowledgement) -> Void
    ) throws(BusError) -> any BusProducer {
        try makeProducer(acknowledge: acknowledge)
    }

    public func batchLimit(timeout: Duration) throws(BusError) -> Int? { nil }
}

/// The writing end of a ``Bus``. Safe to call from any thread.
public protocol BusProducer: AnyObject, Sendable {
    /// Enqueues a message, and returns at once.
    ///
    /// Messages with equal keys go to one partition of their topic and keep their order, even across internal retries.
    /// - Throws: ``BusError`` with code `.queueFull` when the bounded queue has no room (wait for an acknowledgement
    ///   and send again), `.fatal` when the producer can never send again (close it and make another),
    ///   `.messageTooLarge` when no retry can help.
    func send(_ message: OutgoingMessage) throws(BusError)

    /// Waits until every message sent so far is acknowledged, or the timeout has passed.
    ///
    /// - Returns: true if nothing is left in flight.
    func flush(timeout: Duration) -> Bool

    /// Drops queued messages and releases the connection. Acknowledges every message still in flight with an error of
    /// code `.closed` before it returns. Idempotent.
    func close()
}

/// The reading end of a ``Bus``. Used by one thread at a time.
public protocol BusConsumer: AnyObject, Sendable {
    /// Reads the number of partitions of the topic.
    ///
    /// Blocks for at most `timeout`. While partitions are assigned, the answer may be a few minutes old: a request to
    /// the broker might have to wait for a fetch.
    ///
    /// - Throws: ``BusError`` with code `.unreachable` (retriable) or `.unknownTopic`.
    func partitionCount(timeout: Duration) throws(BusError) -> Int

    /// The partitions that had no leader when the broker was last asked for ``partitionCount(timeout:)``. Until they
    /// have one, ``watermarks(partition:timeout:)`` fails for them. They can be assigned, and are read from then on.
    var partitionsWithoutLeader: Set<Int32> { get }

    /// Replaces the assignment: the consumer reads exactly these partitions, each from its position.
    func assign(_ positions: [PartitionPosition]) throws(BusError)

    /// Waits for messages, at most for `timeout`, and returns at most `maxCount` of them.
    ///
    /// Returns as soon as there is a message or an event. An empty batch means that the timeout passed.
    func poll(maxCount: Int, timeout: Duration) throws(BusError) -> ConsumerBatch

    /// The same, with a limit for the size of what it returns.
    ///
    /// - Parameter maxBytes: no further message is returned once the payloads have this many bytes. The first message
    ///   is returned whatever its size.
    func poll(maxCount: Int, maxBytes: Int, timeout: Duration) throws(BusError) -> ConsumerBatch

    /// Asks the broker for the first offset that can still be read and for the offset that the next message will get.
    func watermarks(partition: Int32, timeout: Duration) throws(BusError) -> Watermarks

    /// Returns the offset that the next message of a partition will get, as last reported by the broker along with
    /// fetched messages. Makes no request. Returns nil if it is not known.
    func knownEnd(of partition: Int32) -> Int64?

    /// Stores offsets where ordinary lag tools look for them. Best effort; Martlet itself never reads them back.
    ///
    /// - Parameter node: the node's ID.
    func publishProgress(_ positions: [PartitionPosition], of node: String)

    /// Releases the connection. Idempotent.
    func close()
}

/// Defaults for a consumer that only counts messages, and whose partitions always have a leader.
extension BusConsumer {
    public var partitionsWithoutLeader: Set<Int32> { [] }

    public func poll(maxCount: Int, maxBytes: Int, timeout: Duration) throws(BusError) -> ConsumerBatch {
        try poll(maxCount: maxCount, timeout: timeout)
    }
}

/// A message on its way to the bus.
public struct OutgoingMessage: Sendable, Equatable {
    /// Determines the partition. Messages with equal keys stay in order.
    public var key: [UInt8]
    public var headers: [MessageHeader]
    public var payload: [UInt8]
    /// True for a message without a value, which is not the same as an empty one: in a compacted topic, it removes the
    /// messages of its key. Its payload is empty.
    public var isNull = false
    /// The topic, if it is another one on the same brokers than that of the bus.
    public var topic: String?
    /// An identifier chosen by the sender, returned in the ``Acknowledgement``.
    public var tag: UInt64

    public init(key: [UInt8], headers: [MessageHeader], payload: [UInt8], tag: UInt64) {
        self.key = key
        self.headers = headers
        self.payload = payload
        self.tag = tag
    }

    /// Creates a message without a value.
    public init(nullFor key: [UInt8], headers: [MessageHeader], tag: UInt64) {
        self.init(key: key, headers: headers, payload: [], tag: tag)
        isNull = true
    }
}

/// A named value that can be read without decoding the payload.
public struct MessageHeader: Sendable, Equatable {
    public var name: String
    public var value: [UInt8]

    public init(_ name: String, _ value: [UInt8]) {
        self.name = name
        self.value = value
    }

    /// A header whose value is text.
    public init(_ name: String, _ value: String) {
        self.init(name, Array(value.utf8))
    }
}

/// The outcome of one sent message.
public struct Acknowledgement: Sendable {
    public var tag: UInt64
    /// The position at which the broker stored the message, or the reason why it did not.
    public var result: Result<PartitionPosition, BusError>

    public init(tag: UInt64, result: Result<PartitionPosition, BusError>) {
        self.tag = tag
        self.result = result
    }
}

/// An offset in a partition.
public struct PartitionPosition: Sendable, Hashable {
    public var partition: Int32
    public var offset: Int64

    public init(partition: Int32, offset: Int64) {
        self.partition = partition
        self.offset = offset
    }
}

/// The offsets that a partition holds: from `low` up to, but not including, `high`.
public struct Watermarks: Sendable, Equatable {
    public var low: Int64
    public var high: Int64

    public init(low: Int64, high: Int64) {
        self.low = low
        self.high = high
    }
}

/// A message as it was read.
public struct IncomingMessage: Sendable, Equatable {
    public var position: PartitionPosition
    public var key: [UInt8]
    public var headers: [MessageHeader]
    public var payload: [UInt8]
    /// True for a message without a value. Its payload is empty.
    public var isNull = false
    /// Describes the whole payload if ``payload`` is only its beginning. Such a message is never applied.
    public var cut: PayloadCut?
    /// The reason why the message could not be read. Such a message has only a position, and represents all messages of
    /// an unreadable batch.
    public var problem: String?
    /// The offset of the first message of the unreadable batch that this one represents; ``position`` is that of the
    /// last one. Nil for any other message.
    public var batchStart: Int64?
    /// Milliseconds since 1970, as reported by the broker; -1 if the broker does not know. The value comes from
    /// outside, so ``init(position:key:headers:payload:timestamp:isBrokerTimestamp:)`` clamps it to the valid range of
    /// times.
    public var timestamp: Int64
    /// True if the broker stamped the message on arrival (`LogAppendTime`), false if the producer did.
    public var isBrokerTimestamp: Bool

    public init(
        position: PartitionPosition, key: [UInt8], headers: [MessageHeader], payload: [UInt8], timestamp: Int64,
        isBrokerTimestamp: Bool
    ) {
        self.position = position
        self.key = key
        self.headers = headers
        self.payload = payload
        self.timestamp = min(max(timestamp, -1), InputBounds.milliseconds.upperBound)
        self.isBrokerTimestamp = isBrokerTimestamp
    }

    /// The offsets that a log can reach. Don't compute with offsets outside this range, even if a broker reports them.
    package static let offsets = InputBounds.offsets

    /// Returns the value of the first header with this name.
    public func header(_ name: String) -> [UInt8]? {
        headers.first { $0.name == name }?.value
    }
}

/// The result of one poll.
public struct ConsumerBatch: Sendable {
    public var messages: [IncomingMessage]
    public var events: [ConsumerEvent]
    /// The size of all payloads.
    package var payloadBytes: Int { messages.reduce(0) { $0 + $1.payload.count } }

    public init(messages: [IncomingMessage] = [], events: [ConsumerEvent] = []) {
        self.messages = messages
        self.events = events
    }
}

/// An event, other than a message, that a consumer must handle.
public enum ConsumerEvent: Sendable, Equatable {
    /// The position does not exist: the log was truncated or wiped, or retention has moved past it. The partition is
    /// not read until it is assigned again; nothing is reset silently.
    case offsetOutOfRange(partition: Int32)
    /// Everything in this partition has been read, up to this offset (which the next message will get).
    case endOfPartition(PartitionPosition)
    /// The connection to the broker was lost; it is being restored.
    case disconnected(reason: String)
    /// Any other error of the bus. Reading continues if `error.isRetriable` is true.
    case error(BusError)
}
