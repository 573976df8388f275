public import MartletBus

/// A topic that an exporter needs.
public struct ExportTopic: Sendable, Equatable {
    public var name: String
    public var partitionCount: Int
    /// Whether the broker keeps the newest record of each key, instead of those of some time.
    public var isCompacted: Bool

    public init(name: String, partitionCount: Int, isCompacted: Bool) {
        self.name = name
        self.partitionCount = partitionCount
        self.isCompacted = isCompacted
    }
}

/// The topics of one cluster, as an exporter needs them: it doesn't know which broker they are on.
public protocol ExportTopics: Sendable {
    /// Creates a topic, unless it exists.
    ///
    /// - Throws: ``/MartletBus/BusError``.
    func ensure(_ topic: ExportTopic) throws

    /// Returns the bus of a topic. Its producers also take messages for the other topics.
    ///
    /// - Throws: ``/MartletBus/BusError``.
    func bus(of topic: String) throws -> any Bus
}
