/// What a store made of a save.
public final class DataStoreSaveChangesResult<T: DataStoreSnapshot>: Sendable {
    public let storeIdentifier: String
    /// The lasting identifier of each new model, by its temporary one. A model that the store had already may get that
    /// one's.
    public let remappedIdentifiers: [PersistentIdentifier: PersistentIdentifier]
    /// Models that the store saved otherwise than it was told, by their lasting identifiers. The context takes them
    /// over.
    public let snapshotsToReregister: [PersistentIdentifier: T]
    /// The transaction of the save, where the store keeps a history.
    public let historyToken: (any HistoryToken)?

    public init(
        for storeIdentifier: String, remappedIdentifiers: [PersistentIdentifier: PersistentIdentifier] = [:],
        snapshotsToReregister: [PersistentIdentifier: T] = [:], historyToken: (any HistoryToken)? = nil
    ) {
        self.storeIdentifier = storeIdentifier
        self.remappedIdentifiers = remappedIdentifiers
        self.snapshotsToReregister = snapshotsToReregister
        self.historyToken = historyToken
    }
}
