public import Foundation

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

    package init(
        id: UUID, makerName: String, messages: Int, messageCount: Int, rows: Int, tombstones: Int, isFinished: Bool
    ) {
        self.id = id
        self.makerName = makerName
        self.messages = messages
        self.messageCount = messageCount
        self.rows = rows
        self.tombstones = tombstones
        self.isFinished = isFinished
    }
}
