public import Foundation

/// A snapshot on its topic.
public struct SnapshotInfo: Sendable, Equatable {
    /// Whether it can be loaded.
    public enum State: Sendable, Equatable {
        case complete
        /// Its last message is not there: it is being made, or whoever made it stopped.
        case unfinished
        /// Messages are missing or damaged.
        case damaged(String)
        /// It was made by a newer version of Martlet.
        case newerFormat(String)
    }

    public var id: UUID
    public var maker: NodeID
    /// What the maker calls itself. Empty where the header is not there.
    public var makerName: String
    /// When it was made, by the maker's clock.
    public var made: Date
    /// When the broker got its newest message.
    public var arrived: Date
    public var state: State
    public var messageCount: Int
    public var byteCount: Int
    /// How many partitions the transactions' topic had, and how far they are covered.
    public var partitionCount = 0
    public var positions: [Int32: Int64]

    public var isComplete: Bool { state == .complete }
}

/// How far loading a snapshot has come.
public struct SnapshotProgress: Sendable, Equatable {
    public var id: UUID
    public var makerName: String
    /// Messages that were applied, of all.
    public var messages: Int
    public var messageCount: Int
    public var rows: Int
    public var tombstones: Int
    /// True once all of it was applied, and offsets were set.
    public var isFinished: Bool
}
