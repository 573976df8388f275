public import MartletBus

/// The topics of one cluster, as an ingester reads them: it doesn't know which broker they are on.
public protocol IngestTopics: Sendable {
    /// Returns the bus of a topic.
    ///
    /// - Throws: ``/MartletBus/BusError``.
    func bus(of topic: String) throws -> any Bus
}
