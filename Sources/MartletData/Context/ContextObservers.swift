import Synchronization

/// The observers of a context's changes in memory. Must be used where the context is used.
final class ContextObservers {
    private var members: [ObjectIdentifier: () -> Void] = [:]

    /// The number of observers in the process, so that setting an attribute costs nothing when nobody observes.
    private static let count = Atomic<Int>(0)
    static var exist: Bool { count.load(ordering: .relaxed) > 0 }

    func add(_ owner: AnyObject, _ changed: @escaping () -> Void) {
        guard members.updateValue(changed, forKey: ObjectIdentifier(owner)) == nil else { return }
        Self.count.add(1, ordering: .relaxed)
    }

    func remove(_ owner: ObjectIdentifier) {
        guard members.removeValue(forKey: owner) != nil else { return }
        Self.count.subtract(1, ordering: .relaxed)
    }

    func changed() {
        guard !members.isEmpty else { return }
        for member in members.values { member() }
    }

    deinit { Self.count.subtract(members.count, ordering: .relaxed) }
}
