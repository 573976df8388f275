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

    /// By what fraction the journal may grow until it is measured again.
    private static let tolerance: Int64 = 16

    init(session: ReplicaSession) { self.session = session }

    /// Deletes entries that are older than the age, or beyond the size.
    ///
    /// - Parameter isStopped: called between SQLite transactions; true leaves the rest for the next time.
    func apply(age: Duration?, sizeBytes: Int64?, isStopped: () -> Bool) throws {
        if let age {
            let time = session.now() - age.wholeMilliseconds
            try prune(through: session.read { try ConflictJournal.end($0, before: time) }, isStopped)
        }
        guard let bound = sizeBytes, let ends = try session.read(ConflictJournal.ends), isDue(ends, bound) else {
            return
        }
        try prune(through: session.read { try ConflictJournal.end($0, keepingBytes: bound) }, isStopped)
        guard !isStopped() else { return }
        measurement.withLock { $0 = Measurement(bound: bound, last: ends.upperBound) }
    }

    /// Returns true if the journal may have outgrown the bound: to measure it is to read it.
    private func isDue(_ ends: ClosedRange<Int64>, _ bound: Int64) -> Bool {
        measurement.withLock { known in
            guard let known, known.bound == bound else { return true }
            return ends.upperBound - known.last >= max(1, (ends.upperBound - ends.lowerBound) / Self.tolerance)
        }
    }

    private func prune(through end: Int64, _ isStopped: () -> Bool) throws {
        while !isStopped(), let ends = try session.read(ConflictJournal.ends),
            ends.lowerBound <= min(end, ends.upperBound - 1)
        {
            try session.write { try ConflictJournal.prune($0, through: end) }
        }
    }
}
