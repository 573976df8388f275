import Synchronization

/// Who wants to know when something of a context changes in memory. Used where the context is used.
final class ContextObservers {
    private var members: [ObjectIdentifier: () -> Void] = [:]

    /// How many there are in the process, so that setting an attribute costs nothing where nobody listens.
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
