import Synchronization

/// Knows whether a deferred transaction may be waiting for its time, so that the store is only searched if one may be.
package final class ReleaseWatch: Sendable {
    private let mayHaveDeferred = Atomic(true)

    package init() {}

    /// To be called when a transaction is deferred until its time.
    package func note() { mayHaveDeferred.store(true, ordering: .relaxed) }

    /// Returns false if nothing can be waiting. Before the search: a transaction that is deferred meanwhile is noted
    /// again.
    func begin() -> Bool { mayHaveDeferred.exchange(false, ordering: .relaxed) }
}
