package import MartletWire
import Synchronization

/// Which key ring was tried last on everything that is quarantined for a missing key. From any thread.
package final class TriedKeyRing: Sendable {
    private let generation = Atomic(-1)

    package init() {}

    /// Counts the key ring as tried.
    ///
    /// - Parameter current: how often the key ring has changed.
    /// - Returns: false if it was tried before.
    package func begin(_ current: Int) -> Bool {
        guard generation.load(ordering: .relaxed) < current else { return false }
        generation.store(current, ordering: .relaxed)
        return true
    }

    /// The attempt failed: the key ring counts as not tried.
    package func forget() { generation.store(-1, ordering: .relaxed) }

    /// A message was quarantined for a key that may have arrived meanwhile.
    package func note(_ missing: WireError.MissingKey) {
        if generation.load(ordering: .relaxed) > missing.generation {
            generation.store(missing.generation, ordering: .relaxed)
        }
    }
}
