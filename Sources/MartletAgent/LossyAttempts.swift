import MartletSync

/// What follows from each attempt of long work over a connection that is lost now and then. Pure: it neither works nor
/// waits, and has no clock.
package struct LossyAttempts {
    package enum State: Equatable {
        /// There never was any progress: a wrong address must be reported immediately.
        case untried
        case progressing
        /// There was no progress since this failure.
        case lost(since: ContinuousClock.Instant)
    }

    package enum Action: Equatable {
        /// Try again after this time, from where the work stopped.
        case retry(after: Duration)
        /// Give up, and report the error.
        case giveUp
    }

    package private(set) var state = State.untried
    /// How long to keep retrying without progress.
    private let patience: Duration
    private var backoff = Backoff(from: .seconds(1), to: .seconds(5))

    package init(patience: Duration) { self.patience = patience }

    package mutating func noteProgress() {
        state = .progressing
        backoff.reset()
    }

    /// An attempt has failed.
    package mutating func fail(_ error: any Error, at now: ContinuousClock.Instant) -> Action {
        guard let error = error as? BusError, error.isRetriable else { return .giveUp }
        switch state {
        case .untried: return .giveUp
        case .progressing: state = .lost(since: now)
        case .lost(let since): if now - since >= patience { return .giveUp }
        }
        return .retry(after: backoff.fail())
    }
}
