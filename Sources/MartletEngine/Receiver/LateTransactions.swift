import Synchronization

/// Tells whether a transaction was refused because it arrived after the garbage collection of tombstones, and its
/// author has not been told. From any thread.
package final class LateTransactions: Sendable {
    private let isUnreported = Atomic(false)

    init() {}

    /// Such a transaction was refused.
    package func note() { isUnreported.store(true, ordering: .relaxed) }

    /// True while an author should hear of one.
    package var areWaiting: Bool { isUnreported.load(ordering: .relaxed) }

    /// Returns whether an author should hear of one, and forgets it. If telling fails, call ``note()``.
    package func take() -> Bool { isUnreported.exchange(false, ordering: .relaxed) }
}
