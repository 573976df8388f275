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
    ///   bus, in no promised order. It must not block and must not call back into the producer.
    func makeProducer(
        acknowledge: @escaping @Sendable (Acknowledgement) -> Void
    ) throws(BusError) -> any BusProducer

    /// The same, with a limit for what the producer sends at once.
    ///
    /// - Parameter maxBatchBytes: the most bytes of a batch of messages, before compression. A message that is larger
    ///   alone is sent alone. Nil for the bus's own choice.
    func makeProducer(
        maxBatchBytes: Int?, acknowledge: @escaping @Sendable (Acknowledgement) -> Void
    ) throws(BusError) -> any BusProducer

    /// The largest batch of messages that the topic takes, in bytes as they travel. Nil where the broker does not say.
    ///
    /// Blocks for at most `timeout`.
    /// - Throws: ``BusError`` where the broker can't be asked, or not by this user.
    func batchLimit(timeout: Duration) throws(BusError) -> Int?

    /// Makes a consumer that reads the partitions that ``BusConsumer/assign(_:)`` names.
    func makeConsumer() throws(BusError) -> any BusConsumer
}

/// For a bus that takes whatever it is given.
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
    /// Messages with equal keys go to one partition and keep their order, also across internal retries.
    /// - Throws: ``BusError`` with code `.queueFull` when the bounded queue has no room (wait for an acknowledgement
    ///   and send again), `.fatal` when the producer can never send again (close it and make another),
    ///   `.messageTooLarge` when no retry can help.
    func send(_ message: OutgoingMessage) throws(BusError)

    /// Waits until every message sent so far is acknowledged, or until the timeout has passed.
    ///
    /// - Returns: true when nothing is left in flight.
    func flush(timeout: Duration) -> Bool

    /// Drops what is still queued, releases the connection. Every message still in flight is acknowledged with an error
    /// of code `.closed` before this returns. Idempotent.
    func close()
}

/// The reading end of a ``Bus``. Used by one thread at a time.
public protocol BusConsumer: AnyObject, Sendable {
    /// Reads the number of partitions of the topic.
    ///
    /// Blocks for at most `timeout`. While partitions are read, it may be what the broker said some minutes ago: an
    /// answer may have to wait for what is read.
    ///
    /// - Throws: ``BusError`` with code `.unreachable` (retriable) or `.unknownTopic`.
    func partitionCount(timeout: Duration) throws(BusError) -> Int

    /// Replaces the assignment: reads exactly these partitions, each from its position.
    func assign(_ positions: [PartitionPosition]) throws(BusError)

    /// Waits for messages, at most for `timeout`, and returns at most `maxCount` of them.
    ///
    /// Returns as soon as anything is there. An empty batch means that the timeout passed.
    func poll(maxCount: Int, timeout: Duration) throws(BusError) -> ConsumerBatch

    /// The first offset that can still be read and the offset that the next message will get, asked of the broker.
    func watermarks(partition: Int32, timeout: Duration) throws(BusError) -> Watermarks

    /// The offset that the next message of a partition will get, as far as it is known without asking: brokers say it
    /// with what is read. Nil where nothing is known of it.
    func knownEnd(of partition: Int32) -> Int64?

    /// Stores offsets where ordinary lag tools look for them. Best effort: Martlet itself never reads them back.
    ///
    /// - Parameter node: the node's ID.
    func publishProgress(_ positions: [PartitionPosition], of node: String)

    /// Releases the connection. Idempotent.
    func close()
}

/// A message on its way to the bus.
public struct OutgoingMessage: Sendable, Equatable {
    /// Decides the partition. Messages with equal keys stay in order.
    public var key: [UInt8]
    public var headers: [MessageHeader]
    public var payload: [UInt8]
    /// The sender's own mark, handed back in the ``Acknowledgement``.
    public var tag: UInt64

    public init(key: [UInt8], headers: [MessageHeader], payload: [UInt8], tag: UInt64) {
        self.key = key
        self.headers = headers
        self.payload = payload
        self.tag = tag
    }
}

/// A named value beside the payload that can be read without decoding it.
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

/// The fate of one sent message.
public struct Acknowledgement: Sendable {
    public var tag: UInt64
    /// Where the broker stored the message, or why it did not.
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

/// What a partition holds: offsets from `low` up to, and without, `high`.
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
    /// Where ``payload`` is only the beginning of what the message has: all that is known of it. Nobody takes such a
    /// message.
    public var cut: PayloadCut?
    /// Why nothing of it could be read. Such a message stands for all that could not be, and has only a position.
    public var problem: String?
    /// Milliseconds since 1970, as the broker reports them; -1 where it does not know. Some broker's or producer's
    /// word: ``init(position:key:headers:payload:timestamp:isBrokerTimestamp:)`` moves it into the range of times that
    /// there are.
    public var timestamp: Int64
    /// True when the broker stamped the message on arrival (`LogAppendTime`), false when the producer did.
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

    /// The offsets that a log comes to. A broker that says others is not to be computed with.
    package static let offsets = InputBounds.offsets

    /// The value of the first header with this name.
    public func header(_ name: String) -> [UInt8]? {
        headers.first { $0.name == name }?.value
    }
}

/// What one poll found.
public struct ConsumerBatch: Sendable {
    public var messages: [IncomingMessage]
    public var events: [ConsumerEvent]

    public init(messages: [IncomingMessage] = [], events: [ConsumerEvent] = []) {
        self.messages = messages
        self.events = events
    }
}

/// Something other than a message that a consumer must know of.
public enum ConsumerEvent: Sendable, Equatable {
    /// The position does not exist: the log was truncated, wiped, or has moved on past it. The partition is not read
    /// until it is assigned anew; nothing is reset silently.
    case offsetOutOfRange(partition: Int32)
    /// Everything in this partition has been read, up to this offset (the one that the next message will get).
    case endOfPartition(PartitionPosition)
    /// The connection to the broker was lost; it is being restored.
    case disconnected(reason: String)
    /// Any other error of the bus. Reading goes on where `error.isRetriable` says so.
    case error(BusError)
}
