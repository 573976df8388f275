package import MartletStore

/// What a running agent has warned of, when it deletes old history, and how much free space it gives back. Pure: it is
/// told the time and what was found.
package struct Housekeeping {
    /// How often to look.
    package static let interval = Duration.seconds(5)
    /// How often old history is deleted.
    package static let retentionInterval = Duration.seconds(60)

    private var reused: [ReusedName] = []
    private var lost: Set<String> = []
    /// Nil before the first time, which is due at once.
    private var retainedAt: ContinuousClock.Instant?
    /// How many pages of the file were free at the last look.
    private var freePageCount: Int64 = 0

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

    /// Returns how many free pages of the file to give back to the file system.
    ///
    /// Only those that were free at the last look, too: what a program deletes and writes again needs its space. An
    /// eighth of the file stays free: without any free page, it would grow again at once.
    package mutating func takeFreePages(_ space: FileSpace) -> Int64 {
        let steady = min(space.freePageCount, freePageCount)
        freePageCount = space.freePageCount
        guard space.isShrinkable, steady > space.pageCount / 4, steady * space.pageBytes > Self.leastFreeBytes else {
            return 0
        }
        return min(steady - space.pageCount / 8, Self.mostFreePages)
    }

    /// For less, nobody would notice.
    private static let leastFreeBytes: Int64 = 1 << 20
    /// The housekeeper has more to do. 256 MiB, usually.
    private static let mostFreePages: Int64 = 65_536
}
