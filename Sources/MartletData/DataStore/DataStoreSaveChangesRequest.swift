/// What a context saves.
public struct DataStoreSaveChangesRequest<SnapshotType: DataStoreSnapshot>: Sendable {
    public let editingState: EditingState
    /// New models, with temporary identifiers, which the others may refer to.
    public let inserted: [SnapshotType]
    public let updated: [SnapshotType]
    /// As they were last.
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
