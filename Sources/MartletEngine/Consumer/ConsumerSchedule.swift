/// When a consumer does what it does at intervals. Pure: it is told the time, and does nothing itself.
package struct ConsumerSchedule {
    package enum Job: Hashable, CaseIterable, Sendable {
        /// Asks the topic for its number of partitions, because no event says that it got more.
        case countPartitions
        /// Looks for a snapshot that has missing transactions.
        case lookForSnapshot
        /// Updates the ends of partitions that are not read to their end.
        case refreshEnds
        /// Stores the ends of the partitions: they serve status queries, not reading.
        case storeEnds
        /// Commits offsets to the broker for lag tools: a request.
        case publishOffsets
        /// Logs that this node's clock is wrong.
        case warnOfClock
    }

    private let countInterval: Duration
    private var doneAt: [Job: ContinuousClock.Instant]

    /// - Parameter countInterval: how often the topic is asked for its number of partitions, and for a snapshot that is
    ///   missing.
    package init(countInterval: Duration, at now: ContinuousClock.Instant) {
        self.countInterval = countInterval
        // A connection begins with these. The others are due at once.
        doneAt = [.countPartitions: now, .lookForSnapshot: now, .refreshEnds: now]
    }

    package func isDue(_ job: Job, at now: ContinuousClock.Instant) -> Bool {
        guard let last = doneAt[job] else { return true }
        return now - last > interval(of: job)
    }

    /// The job was done.
    package mutating func note(_ job: Job, at now: ContinuousClock.Instant) { doneAt[job] = now }

    /// Returns whether the job is due, and counts it as done then.
    package mutating func begin(_ job: Job, at now: ContinuousClock.Instant) -> Bool {
        guard isDue(job, at: now) else { return false }
        note(job, at: now)
        return true
    }

    private func interval(of job: Job) -> Duration {
        switch job {
        case .countPartitions, .lookForSnapshot: countInterval
        case .refreshEnds, .storeEnds, .publishOffsets: .seconds(1)
        case .warnOfClock: .seconds(600)
        }
    }
}
