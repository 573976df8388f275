/// A context's request for models from a store.
public struct DataStoreFetchRequest<T: PersistentModel>: @unchecked Sendable {  // safe because key paths are immutable
    public let descriptor: FetchDescriptor<T>
    public let editingState: EditingState

    public init(descriptor: FetchDescriptor<T>, editingState: EditingState) {
        self.descriptor = descriptor
        self.editingState = editingState
    }
}
