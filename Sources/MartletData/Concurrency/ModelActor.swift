/// An actor with a context of its own, for work on models off the main actor. Get the conformance from
/// ``ModelActor()``.
///
/// Pass identifiers into and out of the actor, never models: a model may only be used where its context is used.
public protocol ModelActor: Actor {
    /// The container of the context.
    nonisolated var modelContainer: ModelContainer { get }
    /// The executor that runs the actor's code. Access the context through ``modelContext``, not through this.
    nonisolated var modelExecutor: any ModelExecutor { get }
}

extension ModelActor {
    /// The executor in ``modelExecutor``.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        guard let executor = modelExecutor as? any SerialModelExecutor else {
            // The actor's author chose it: an actor's code can't run on an executor that isn't serial.
            preconditionFailure("The executor of a model actor must be a SerialModelExecutor.")
        }
        return executor.asUnownedSerialExecutor()
    }

    /// The context that belongs to this actor.
    public var modelContext: ModelContext { modelExecutor.modelContext }

    /// The model with an identifier, from memory or from the store. Nil if there is none, or if it has another type.
    public subscript<T: PersistentModel>(id: PersistentIdentifier, as as: T.Type) -> T? {
        modelContext.existingModel(for: id) as? T
    }
}
