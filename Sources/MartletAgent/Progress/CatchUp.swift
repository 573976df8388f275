package import MartletSync

/// Decides whether a node has a lot to read, and how far it is: the line that `martlet run` shows on a terminal. Pure.
package struct CatchUp {
    /// A catch-up begins when more messages than this are waiting, the same limit as for "Catching up" in the log.
    package static let most = 1000
    /// It ends when no more than this are waiting: on a busy topic some messages are always on their way.
    package static let least = 100
    /// The period over which the rate is computed.
    private static let window = Duration.seconds(10)

    private enum Subject: Equatable {
        case snapshot
        case topic
    }

    private var subject: Subject?
    /// The positions at which the catch-up began, by partition.
    private var start: [Int32: Int64] = [:]
    private var samples: [(at: ContinuousClock.Instant, done: Int)] = []

    package init() {}

    /// - Parameter columns: see ``ProgressText/line(_:of:_:details:columns:)``.
    /// - Returns: the line to show. Nil if the node has caught up, or it isn't known yet.
    package mutating func line(
        _ progress: ConsumerProgress, at now: ContinuousClock.Instant, columns: Int? = nil
    ) -> String? {
        if let snapshot = progress.snapshot, !snapshot.isFinished {
            let rate = rate(.snapshot, done: snapshot.messages, at: now)
            return ProgressText.line(
                snapshot.messages, of: snapshot.messageCount, "messages of a snapshot",
                details: ["\(snapshot.rows) rows"] + texts(rate, remaining: snapshot.messageCount - snapshot.messages),
                columns: columns)
        }
        // Until the positions are known from which to read on, everything would seem to be waiting.
        guard !progress.positions.isEmpty else { return end() }
        let waiting = Int(progress.waiting)
        guard waiting > (subject == .topic ? Self.least : Self.most) else { return end() }
        if subject != .topic || hasGoneBack(progress) {
            start = progress.positions
            samples = []
        }
        let done = progress.positions.reduce(0) { $0 + Int($1.value - (start[$1.key] ?? 0)) }
        let rate = rate(.topic, done: done, at: now)
        return ProgressText.line(
            done, of: done + waiting, "messages", details: texts(rate, remaining: waiting), columns: columns)
    }

    private mutating func end() -> String? {
        self = CatchUp()
        return nil
    }

    /// Returns true if reading of a partition went back to before the start.
    private func hasGoneBack(_ progress: ConsumerProgress) -> Bool {
        progress.positions.contains { $1 < (start[$0] ?? 0) }
    }

    private func texts(_ rate: Double?, remaining: Int) -> [String] {
        guard let rate else { return [] }
        return [ProgressText.rate(rate), ProgressText.estimate(remaining: remaining, perSecond: rate)]
    }

    /// Returns the recent rate per second. Nil in the first second.
    private mutating func rate(_ subject: Subject, done: Int, at now: ContinuousClock.Instant) -> Double? {
        if self.subject != subject || done < samples.last?.done ?? 0 { samples = [] }
        self.subject = subject
        samples.append((now, done))
        // Keeps one sample that is as old as the window.
        while samples.count > 2, now - samples[1].at >= Self.window { samples.removeFirst() }
        guard let first = samples.first, now - first.at >= .seconds(1) else { return nil }
        return Double(done - first.done) / ((now - first.at) / .seconds(1))
    }
}
