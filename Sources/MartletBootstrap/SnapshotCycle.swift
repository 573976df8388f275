package import Foundation
package import MartletCore

/// When a node looks whether it has to make a snapshot, and what follows from each event. Pure: it neither asks the
/// broker nor waits, and has no clock. ``SnapshotElection`` says whose turn it is.
package struct SnapshotCycle: Sendable {
    package enum State: Equatable, Sendable {
        /// No node is known to wait for a snapshot.
        case watching
        /// A node has been known to wait for a snapshot since then.
        case requested(since: ContinuousClock.Instant)
        /// A snapshot is being made.
        ///
        /// - request: since when a node has been known to wait for one. Nil if none does.
        /// - isAnswer: true if it is made for that node; false if it was this node's turn anyway.
        case making(request: ContinuousClock.Instant?, isAnswer: Bool)
    }

    /// The present, by the clock that ages are measured with, and by the one that snapshots are dated with.
    package struct Present: Sendable {
        package var instant: ContinuousClock.Instant
        package var date: Date

        package init(instant: ContinuousClock.Instant, date: Date) {
            self.instant = instant
            self.date = date
        }

        /// Returns the date of an earlier instant. It is right even if the wall clock was wrong then: a clock that was
        /// ahead would let this node wait until it is as late.
        package func date(of instant: ContinuousClock.Instant) -> Date {
            date.addingTimeInterval((instant - self.instant) / .seconds(1))
        }
    }

    package enum Event: Sendable {
        /// Another node waits for a snapshot.
        case requested
        /// The store was read.
        case examined(SnapshotElection.Standing)
        /// The broker has listed the snapshots on the topic, after the store was read.
        case listed([SnapshotInfo], SnapshotElection.Standing)
        case made
        /// Reading the store, listing or making a snapshot has failed.
        case failed
    }

    package enum Action: Equatable, Sendable {
        case wait
        /// End the wait, and look now.
        case look
        /// Ask the broker for the snapshots on the topic.
        case list
        /// Make a snapshot.
        ///
        /// - isAnswer: true if another node waits for it.
        case make(isAnswer: Bool)
    }

    package private(set) var state = State.watching
    private let configuration: SnapshotConfiguration
    /// When this node began to look.
    private let startedAt: ContinuousClock.Instant
    /// When this node last made a snapshot for another one.
    private var answeredAt: ContinuousClock.Instant?
    private var arrivals = SnapshotArrivals()
    private var backoff = Backoff(from: .seconds(1), to: .seconds(60))

    package init(_ configuration: SnapshotConfiguration, at now: ContinuousClock.Instant) {
        self.configuration = configuration
        startedAt = now
    }

    /// How long to wait before the next look, unless a request comes.
    package var delay: Duration {
        let regular =
            state == .watching
            ? min(.seconds(60), max(.milliseconds(100), configuration.interval / 20)) : .seconds(1)
        return max(regular, backoff.delay)
    }

    /// - Parameter node: this node's present ID: a fork changes it.
    package mutating func handle(_ event: Event, of node: NodeID, at now: Present) -> Action {
        switch event {
        case .requested: return request(at: now.instant)
        case .examined(let standing):
            // If there are too few messages, there is no need to ask the broker.
            let mayBeDue = election(node, now).isDue([], standing, now: .distantFuture)
            guard state == .watching, !mayBeDue else { return .list }
            backoff.reset()
            return .wait
        case .listed(let snapshots, let standing): return choose(snapshots, standing, node, now)
        case .made:
            if case .making(let request, let isAnswer) = state {
                if isAnswer { answeredAt = now.instant }
                // The next look finds that a snapshot has come since a request.
                state = isAnswer ? .watching : Self.state(request)
            }
            backoff.reset()
            return .wait
        case .failed:
            fail(at: now.instant)
            return .wait
        }
    }

    private static func state(_ request: ContinuousClock.Instant?) -> State {
        request.map { .requested(since: $0) } ?? .watching
    }

    private func election(_ node: NodeID, _ now: Present) -> SnapshotElection {
        SnapshotElection(node: node, configuration: configuration, since: now.date(of: startedAt))
    }

    private mutating func request(at now: ContinuousClock.Instant) -> Action {
        switch state {
        case .watching:
            state = .requested(since: now)
            return .look
        case .making(nil, let isAnswer):
            state = .making(request: now, isAnswer: isAnswer)
            return .look
        case .requested, .making: return .wait
        }
    }

    private mutating func choose(
        _ snapshots: [SnapshotInfo], _ standing: SnapshotElection.Standing, _ node: NodeID, _ now: Present
    ) -> Action {
        let election = election(node, now)
        let snapshots = arrivals.corrected(snapshots, at: now)
        if case .requested(let since) = state {
            let answer = election.answer(
                request: now.date(of: since), last: answeredAt.map(now.date(of:)), snapshots, standing, now: now.date)
            switch answer {
            case .make: return make(request: since, isAnswer: true)
            case .wait: break
            case .drop: state = .watching
            }
        }
        guard election.isDue(snapshots, standing, now: now.date) else {
            backoff.reset()
            return .wait
        }
        guard case .requested(let since) = state else { return make(request: nil, isAnswer: false) }
        return make(request: since, isAnswer: false)
    }

    private mutating func make(request: ContinuousClock.Instant?, isAnswer: Bool) -> Action {
        state = .making(request: request, isAnswer: isAnswer)
        return .make(isAnswer: isAnswer)
    }

    /// The next look tries again to answer a request, until the other node would have asked again if it still waits.
    private mutating func fail(at now: ContinuousClock.Instant) {
        backoff.fail()
        guard case .making(let request, let isAnswer) = state else { return }
        let isOver = isAnswer && request.map { now - $0 >= .seconds(SnapshotElection.requestPause) } ?? false
        state = isOver ? .watching : Self.state(request)
    }
}
