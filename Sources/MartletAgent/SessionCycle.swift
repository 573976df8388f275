import MartletSync

/// Where a sync session inside another program stands, and what follows from each event. Pure: it neither opens the
/// store nor waits, and has no clock.
package struct SessionCycle {
    package enum State: Equatable {
        /// The agent is being made, which opens the store.
        ///
        /// - isInLine: true if another process had the store's lock at the last attempt.
        case opening(isInLine: Bool)
        /// The agent has run since then.
        case running(since: ContinuousClock.Instant)
        /// Another process has the store's lock. That is no failure.
        case waitingForTurn
        /// The last attempt failed.
        case backingOff
        /// There is no further attempt.
        case ended
    }

    package enum Event {
        /// The store is open, and the agent can run.
        case opened(at: ContinuousClock.Instant)
        /// Opening the store, or the agent that ran, has failed.
        case failed(any Error, at: ContinuousClock.Instant)
        /// The agent has ended without an error.
        case finished
        /// A wait is over.
        case waited
        /// The program wants no more sync.
        case stopped
    }

    package enum Action: Equatable {
        /// Make an agent.
        case open
        /// Run the agent until it ends.
        case run
        /// Log this, then wait until the time is over or the session is stopped.
        case wait(Duration, Notice?)
        /// Log this, and end.
        case end(Notice?)
    }

    /// What to log about the error that was reported last.
    package enum Notice: Equatable {
        case waitsForItsTurn
        case copied
        case failed
        /// The session ends with this error.
        case ended
    }

    /// After an agent has run for this long, an error is the first of its kind.
    package static let soundTime = Duration.seconds(60)
    /// How often to look whether the other process has released the store.
    package static let turnInterval = Duration.seconds(1)
    /// How often to look whether a person has settled which copy of a store keeps the node ID.
    package static let copyInterval = Duration.seconds(60)

    package private(set) var state = State.opening(isInLine: false)
    private var backoff = Backoff(from: .seconds(1), to: .seconds(60))

    package init() {}

    package mutating func handle(_ event: Event) -> Action {
        switch event {
        case .stopped: return end(nil)
        case .opened(let now):
            state = .running(since: now)
            return .run
        case .finished:
            state = .opening(isInLine: false)
            return .open
        case .waited:
            state = .opening(isInLine: state == .waitingForTurn)
            return .open
        case .failed(let error, let now): return fail(error, at: now)
        }
    }

    private mutating func end(_ notice: Notice?) -> Action {
        state = .ended
        return .end(notice)
    }

    private mutating func fail(_ error: any Error, at now: ContinuousClock.Instant) -> Action {
        let code = (error as? StoreError)?.code
        switch state {
        case .opening where Self.isPermanent(error): return end(.ended)
        case .opening(let isInLine) where code == .locked:
            state = .waitingForTurn
            return .wait(Self.turnInterval, isInLine ? nil : .waitsForItsTurn)
        // Opening a large store takes minutes, and proves nothing.
        case .running(let since) where now - since > Self.soundTime: backoff.reset()
        default: break
        }
        state = .backingOff
        return code == .copied ? .wait(Self.copyInterval, .copied) : .wait(backoff.fail(), .failed)
    }

    /// Returns true for an error of opening the store that remains until a person changes something. Errors of a
    /// running agent are never permanent: they may come from a message.
    private static func isPermanent(_ error: any Error) -> Bool {
        switch error {
        case is ConfigurationError: true
        case let error as StoreError: [.corrupt, .newerVersion, .invalidArgument].contains(error.code)
        case let error as BusError: error.code == .configuration
        default: false
        }
    }
}
