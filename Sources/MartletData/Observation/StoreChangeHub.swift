import MartletStore
import Synchronization

/// Notifies a container's observers of commits to its store: by its own contexts, by other processes, by sync.
///
/// One thread watches the file while there are observers, and ends with the last one. A store in memory has no other
/// writers, and needs no thread.
final class StoreChangeHub: Sendable {
    enum Source {
        /// A context of this container has saved; called on its thread.
        case save
        /// Some connection has committed; called on the watching thread.
        case commit
    }

    private struct State {
        var members: [Int: @Sendable (Source) -> Void] = [:]
        var next = 0
        var watch: CommitWatch?
        weak var container: ModelContainer?
    }

    private let path: String?
    private let state = Mutex(State())

    /// - Parameter path: nil for a store in memory.
    init(path: String?) { self.path = path }

    /// True if commits are noticed by watching the file.
    var isWatching: Bool { path != nil }

    func belongs(to container: ModelContainer) { state.withLock { $0.container = container } }

    /// Adds an observer. It is notified of every commit after this returns, possibly once for many commits.
    ///
    /// - Throws: `StoreError` if the kernel has no watch left.
    func add(_ changed: @escaping @Sendable (Source) -> Void) throws -> Subscription {
        try state.withLock { state in
            if state.watch == nil, let path {
                state.watch = try CommitWatch(store: path) { [weak self] in self?.notify(.commit) }
            }
            state.next += 1
            state.members[state.next] = changed
            return Subscription(hub: self, number: state.next)
        }
    }

    private func remove(_ number: Int) {
        // Released outside of the lock.
        _ = state.withLock { state -> CommitWatch? in
            state.members[number] = nil
            guard state.members.isEmpty else { return nil }
            defer { state.watch = nil }
            return state.watch
        }
    }

    func saved() { notify(.save) }

    private func notify(_ source: Source) {
        let (members, container) = state.withLock { (Array($0.members.values), $0.container) }
        guard !members.isEmpty else { return }
        for member in members { member(source) }
        if source == .commit || !isWatching {
            NotificationCenter.default.post(name: ModelContainer.remoteChange, object: container)
        }
    }

    /// Ends when released.
    final class Subscription: Sendable {
        private let hub: StoreChangeHub
        private let number: Int

        fileprivate init(hub: StoreChangeHub, number: Int) {
            self.hub = hub
            self.number = number
        }

        deinit { hub.remove(number) }
    }
}

extension ModelContainer {
    /// Posted after any commit to a container's store, with the container as the object, on a thread of the container's
    /// own, as long as a ``HistoryObserver`` or ``ResultsObserver`` of the container exists.
    public static let remoteChange = Notification.Name("SwiftData.ModelContainer.remoteChange")
}
