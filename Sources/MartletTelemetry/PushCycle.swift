import MartletSync

/// When metrics are collected and pushed, and what the log says of it. Pure: it neither waits nor sends.
///
/// There is one request at a time. A request that fails is repeated until the next one is due, and is then dropped: the
/// next one has newer values of the same counters.
package struct PushCycle {
    package enum Action: Sendable, Equatable {
        /// Collect and push after this time.
        case collect(after: Duration)
        /// Send the same request again after this time.
        case resend(after: Duration)
    }

    package struct Step: Sendable, Equatable {
        package var action: Action
        package var events: [Event]

        package init(_ action: Action, _ events: [Event] = []) {
            self.action = action
            self.events = events
        }
    }

    package enum Event: Sendable, Equatable {
        /// The first failure since the last success.
        case failing(String)
        /// The first refusal since the last success.
        case refused(String)
        case stillFailing(String)
        /// Success after failures.
        case recovered
        /// Some data points were rejected, for the first time since all were accepted.
        case rejecting(Int64, String)
        /// The collector has accepted everything, and says something that it did not say the last time.
        case advised(String)
    }

    private var backoff = Backoff(from: .seconds(1), to: .seconds(30))
    private var due: ContinuousClock.Instant
    private var isFailing = false
    private var isRejecting = false
    /// What the collector said at the last success.
    private var notice = ""

    /// - Parameter now: the first push is due now.
    package init(now: ContinuousClock.Instant) { due = now }

    /// Metrics were collected for a request.
    package mutating func noteCollected(at now: ContinuousClock.Instant, interval: Duration) {
        due += interval
        // After a long wait, what was missed is not made up for.
        if due <= now { due = now + interval }
    }

    /// Returns what to do next.
    package mutating func note(_ outcome: PushOutcome, at now: ContinuousClock.Instant) -> Step {
        switch outcome {
        case .cancelled: return Step(wait(now))
        case .delivered(let rejected, let message):
            backoff.reset()
            defer {
                isFailing = false
                isRejecting = rejected > 0
                notice = message
            }
            var events: [Event] = isFailing ? [.recovered] : []
            if rejected > 0, !isRejecting { events.append(.rejecting(rejected, message)) }
            // A collector may have something to say although it has taken everything.
            if rejected == 0, !message.isEmpty, message != notice { events.append(.advised(message)) }
            return Step(wait(now), events)
        case .refused(let reason):
            backoff.reset()
            defer { isFailing = true }
            return Step(wait(now), [isFailing ? .stillFailing(reason) : .refused(reason)])
        case .failed(let reason, let retryAfter):
            defer { isFailing = true }
            let delay = max(backoff.fail(), retryAfter ?? .zero)
            let events: [Event] = [isFailing ? .stillFailing(reason) : .failing(reason)]
            if now + delay < due { return Step(.resend(after: delay), events) }
            // The next one keeps to the collector's wish, too.
            due = max(due, now + (retryAfter ?? .zero))
            return Step(wait(now), events)
        }
    }

    private func wait(_ now: ContinuousClock.Instant) -> Action { .collect(after: max(.zero, due - now)) }
}
