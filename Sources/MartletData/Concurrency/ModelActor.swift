/// An actor with a context of its own, for work on models beside the main actor. Conformance comes from
/// ``ModelActor()``.
///
/// Pass identifiers into and out of it, never models: a model is used where its context is used.
public protocol ModelActor: Actor {
    /// The container of the context.
    nonisolated var modelContainer: ModelContainer { get }
    /// What runs the actor's code. Reach the context by ``modelContext``, not by this.
    nonisolated var modelExecutor: any ModelExecutor { get }
}

extension ModelActor {
    /// The executor that ``modelExecutor`` is.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        guard let executor = modelExecutor as? any SerialModelExecutor else {
            // Whoever wrote the actor chose it: an actor's code can't run on an executor that isn't serial.
            preconditionFailure("The executor of a model actor must be a SerialModelExecutor.")
        }
        return executor.asUnownedSerialExecutor()
    }

    /// The context that belongs to this actor.
    public var modelContext: ModelContext { modelExecutor.modelContext }

    /// The model with an identifier, of memory or of the store. Nil where there is none, and where it is of another
    /// type.
    public subscript<T: PersistentModel>(id: PersistentIdentifier, as as: T.Type) -> T? {
        modelContext.existingModel(for: id) as? T
    }
}
