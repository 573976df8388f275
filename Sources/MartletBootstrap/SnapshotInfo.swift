public import Foundation
public import MartletCore

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
    /// The name of the transactions' topic. Empty if the header is missing.
    package var topic = ""
    /// The number of partitions of the transactions' topic, and the offsets that the snapshot covers.
    public var partitionCount = 0
    public var positions: [Int32: Int64]

    package init(
        id: UUID, maker: NodeID, makerName: String, made: Date, arrived: Date, state: State, messageCount: Int,
        byteCount: Int, topic: String = "", partitionCount: Int = 0, positions: [Int32: Int64]
    ) {
        self.id = id
        self.maker = maker
        self.makerName = makerName
        self.made = made
        self.arrived = arrived
        self.state = state
        self.messageCount = messageCount
        self.byteCount = byteCount
        self.topic = topic
        self.partitionCount = partitionCount
        self.positions = positions
    }

    public var isComplete: Bool { state == .complete }
}
