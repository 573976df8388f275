/// Identifies the context that uses a store.
public struct EditingState: Sendable, Identifiable {
    /// The same for as long as the context lives.
    public let id: UUID
    /// The context's ``ModelContext/author``.
    public var author: String?
}
