import Foundation

/// Gives the initializer of a fetched model its backing, before the default values of its properties are assigned: they
/// are then known to be of no use, and a backing to throw away needn't be made.
enum BackingHandover {
    // Safe because it is written once, before anyone reads it.
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()

    /// Runs an initializer on this thread. What it doesn't take isn't given to anybody else.
    static func give<M>(_ backing: ModelBacking, to initializer: () -> M) -> M {
        pthread_setspecific(key, Unmanaged.passUnretained(backing).toOpaque())
        defer { pthread_setspecific(key, nil) }
        return initializer()
    }

    /// The backing that waits for an instance of a hierarchy.
    static func take(for root: any PersistentModel.Type) -> ModelBacking? {
        guard let pointer = pthread_getspecific(key) else { return nil }
        let backing = Unmanaged<ModelBacking>.fromOpaque(pointer).takeUnretainedValue()
        // A default value may make models of other kinds.
        guard backing.layout?.root.type == root else { return nil }
        pthread_setspecific(key, nil)
        return backing
    }
}

extension ModelBacking {
    /// For what `@Model` writes: the backing of an instance whose initializer begins.
    public static func forInitializer(of root: any PersistentModel.Type) -> ModelBacking {
        BackingHandover.take(for: root) ?? ModelBacking()
    }
}
