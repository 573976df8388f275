/// The result of a store's save.
public final class DataStoreSaveChangesResult<T: DataStoreSnapshot>: Sendable {
    public let storeIdentifier: String
    /// The permanent identifier of each new model, by its temporary one. It may be the identifier of a model that the
    /// store had already.
    public let remappedIdentifiers: [PersistentIdentifier: PersistentIdentifier]
    /// Models whose saved values differ from those that the context passed, by their permanent identifiers. The context
    /// adopts them.
    public let snapshotsToReregister: [PersistentIdentifier: T]
    /// The token of the save's transaction, if the store keeps a history.
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
