package import MartletSync

/// Whether a node has a lot to read, and how far it is with that: what `martlet run` shows on a terminal. Pure.
package struct CatchUp {
    /// It begins with more messages that wait than this, as the log's "Catching up" does,
    package static let most = 1000
    /// and ends with no more than this: on a busy topic there is always something on its way.
    package static let least = 100
    /// What the rate is worked out from.
    private static let window = Duration.seconds(10)

    private enum Subject: Equatable {
        case snapshot
        case topic
    }

    private var subject: Subject?
    /// Where reading was when it began, by partition.
    private var start: [Int32: Int64] = [:]
    private var samples: [(at: ContinuousClock.Instant, done: Int)] = []

    package init() {}

    /// - Parameter columns: as for ``ProgressText/line(_:of:_:details:columns:)``.
    /// - Returns: the line to show; nil where the node is in step, or nobody knows yet.
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
        // Until it is decided where to read on, everything would seem to wait.
        guard !progress.positions.isEmpty else { return end() }
        let waiting = progress.ends.reduce(0) { $0 + Int(max(0, $1.value - (progress.positions[$1.key] ?? 0))) }
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

    /// True where a partition is read again from before.
    private func hasGoneBack(_ progress: ConsumerProgress) -> Bool {
        progress.positions.contains { $1 < (start[$0] ?? 0) }
    }

    private func texts(_ rate: Double?, remaining: Int) -> [String] {
        guard let rate else { return [] }
        return [ProgressText.rate(rate), ProgressText.estimate(remaining: remaining, perSecond: rate)]
    }

    /// What was done in a second of late. Nil in the first second.
    private mutating func rate(_ subject: Subject, done: Int, at now: ContinuousClock.Instant) -> Double? {
        if self.subject != subject || done < samples.last?.done ?? 0 { samples = [] }
        self.subject = subject
        samples.append((now, done))
        // One stays that is as old as the window.
        while samples.count > 2, now - samples[1].at >= Self.window { samples.removeFirst() }
        guard let first = samples.first, now - first.at >= .seconds(1) else { return nil }
        return Double(done - first.done) / ((now - first.at) / .seconds(1))
    }
}
