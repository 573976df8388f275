/// The changes that a context saves to a store.
public struct DataStoreSaveChangesRequest<SnapshotType: DataStoreSnapshot>: Sendable {
    public let editingState: EditingState
    /// New models, with temporary identifiers, to which the others may refer.
    public let inserted: [SnapshotType]
    public let updated: [SnapshotType]
    /// The deleted models, with their last values.
    public let deleted: [SnapshotType]

    public init(
        editingState: EditingState, inserted: [SnapshotType], updated: [SnapshotType], deleted: [SnapshotType]
    ) {
        self.editingState = editingState
        self.inserted = inserted
        self.updated = updated
        self.deleted = deleted
    }
}
