import MartletCore
import MartletReplica
import Synchronization

/// Deletes the oldest entries of the conflict journal.
final class ConflictRetention: Sendable {
    private struct Measurement {
        var bound: Int64
        /// The number of the newest entry.
        var last: Int64
    }

    private let session: ReplicaSession
    /// The last measurement of the journal's size.
    private let measurement = Mutex<Measurement?>(nil)

    /// By what fraction of the bound the journal may grow until it is measured again.
    private static let tolerance: Int64 = 16

    init(session: ReplicaSession) { self.session = session }

    /// Deletes entries that are older than the age, or beyond the size.
    ///
    /// - Parameter isStopped: called between SQLite transactions; true leaves the rest for the next time.
    func apply(age: Duration?, sizeBytes: Int64?, isStopped: () -> Bool) throws {
        if let age {
            let now = session.now()
            let time = now - age.wholeMilliseconds
            try prune(through: session.read { try ConflictJournal.end($0, before: time, now: now) }, isStopped)
        }
        guard let bound = sizeBytes, let last = try session.read(ConflictJournal.ends)?.upperBound,
            try isDue(bound)
        else { return }
        try prune(through: session.read { try ConflictJournal.end($0, keepingBytes: bound) }, isStopped)
        guard !isStopped() else { return }
        measurement.withLock { $0 = Measurement(bound: bound, last: last) }
    }

    /// Returns true if the journal may have outgrown the bound: to measure it is to read it.
    private func isDue(_ bound: Int64) throws -> Bool {
        guard let known = measurement.withLock({ $0 }), known.bound == bound else { return true }
        return try session.read { try ConflictJournal.bytes($0, after: known.last) } > bound / Self.tolerance
    }

    private func prune(through end: Int64, _ isStopped: () -> Bool) throws {
        while !isStopped(), let ends = try session.read(ConflictJournal.ends),
            ends.lowerBound <= min(end, ends.upperBound - 1)
        {
            try session.write { try ConflictJournal.prune($0, through: end) }
        }
    }
}
