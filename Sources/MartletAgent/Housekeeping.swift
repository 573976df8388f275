package import MartletStore

/// What a running agent has warned of, and when it deletes old history. Pure: it is told the time and what was found.
package struct Housekeeping {
    /// How often to look.
    package static let interval = Duration.seconds(5)
    /// How often old history is deleted.
    package static let retentionInterval = Duration.seconds(60)

    private var reused: [ReusedName] = []
    private var lost: Set<String> = []
    /// Nil before the first time, which is due at once.
    private var retainedAt: ContinuousClock.Instant?

    package init() {}

    /// Returns the names that were not reused at the last look. The first look finds those that were reused while no
    /// agent ran.
    package mutating func news(reused found: [ReusedName]) -> [ReusedName] {
        defer { reused = found }
        return found.filter { !reused.contains($0) }
    }

    /// - Parameter found: the names of the tables that are no longer synced.
    /// - Returns: those that were at the last look.
    package mutating func news(lost found: Set<String>) -> Set<String> {
        defer { lost = found }
        return found.subtracting(lost)
    }

    /// Returns true if old history has to be deleted now. Then it is not due again for ``retentionInterval``, whether
    /// that succeeds or not.
    package mutating func takeRetention(at now: ContinuousClock.Instant) -> Bool {
        if let retainedAt, now - retainedAt < Self.retentionInterval { return false }
        retainedAt = now
        return true
    }
}
