public import Foundation

/// A snapshot on its topic.
public struct SnapshotInfo: Sendable, Equatable {
    /// Whether it can be loaded.
    public enum State: Sendable, Equatable {
        case complete
        /// The last message is missing: the snapshot is being made, or its maker stopped.
        case unfinished
        /// Messages are missing or damaged.
        case damaged(String)
        /// A newer version of Martlet made it.
        case newerFormat(String)
    }

    public var id: UUID
    public var maker: NodeID
    /// The name of the node that made it. Empty if the header is missing.
    public var makerName: String
    /// When it was made, by the maker's clock.
    public var made: Date
    /// When the broker received its newest message.
    public var arrived: Date
    public var state: State
    public var messageCount: Int
    public var byteCount: Int
    /// The number of partitions of the transactions' topic, and the offsets that the snapshot covers.
    public var partitionCount = 0
    public var positions: [Int32: Int64]

    public var isComplete: Bool { state == .complete }
}

/// How far loading a snapshot has come.
public struct SnapshotProgress: Sendable, Equatable {
    public var id: UUID
    public var makerName: String
    /// How many of the messages were applied.
    public var messages: Int
    public var messageCount: Int
    public var rows: Int
    public var tombstones: Int
    /// True once all messages were applied and the offsets were set.
    public var isFinished: Bool
}
