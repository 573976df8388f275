import Foundation
package import MartletAgent
import MartletSync

/// Decides whether a node has caught up with the topic, and why not. Pure.
package struct Readiness: Sendable, Equatable {
    package struct Reason: Sendable, Equatable {
        /// For programs; docs/operations.md lists them.
        package enum Code: String, Sendable {
            case starting
            case snapshot
            case reading
            case publishing
            case stuck
            case lag
        }

        package var code: Code
        /// For people.
        package var message: String
    }

    /// What needs somebody, although the node is ready.
    package struct Warning: Sendable, Equatable {
        /// For programs; docs/operations.md lists them.
        package enum Code: String, Sendable {
            case missing
        }

        package var code: Code
        /// For people.
        package var message: String
    }

    package var reasons: [Reason] = []
    package var warnings: [Warning] = []
    package var isReady: Bool { reasons.isEmpty }

    /// A consumer polls twice a second, and a broker acknowledges messages. The limit is ten times a request's usual
    /// timeout.
    private static let stillness = Duration.seconds(30)

    /// - Parameter limit: the largest lag of a ready node.
    package init(_ facts: AgentFacts, limit: HTTPConfiguration.ReadyLag) {
        judgeSnapshot(facts)
        judgeReading(facts)
        judgeLag(facts.lags, limit)
        if let problem = facts.publisher.problem { add(.publishing, "Publishing fails: \(problem)") }
        let still = facts.now - facts.publisher.advancedAt
        if facts.publisher.inFlightBytes > 0, still > Self.stillness {
            add(.stuck, "The broker has acknowledged nothing for \(still.wholeSeconds) s, although messages were sent.")
        }
    }

    private mutating func add(_ code: Reason.Code, _ message: String) {
        reasons.append(Reason(code: code, message: message))
    }

    /// A node that lacks what the topic dropped is not in sync until it has a snapshot. Where no node makes any, it
    /// would never be ready: so after a while it is, with a warning.
    private mutating func judgeSnapshot(_ facts: AgentFacts) {
        let progress = facts.consumer
        if let snapshot = progress.snapshot, !snapshot.isFinished {
            add(.snapshot, "A snapshot is being loaded: \(snapshot.messages) of \(snapshot.messageCount) messages.")
        } else if progress.hasUnfinishedSnapshot {
            add(.snapshot, "A snapshot was loaded in part; loading continues with the rest, or with another snapshot.")
        } else if let until = progress.awaitsSnapshotUntil {
            if facts.now < until {
                add(.snapshot, "The topic dropped transactions that this node has not read; it waits for a snapshot.")
            } else {
                warnings.append(
                    Warning(
                        code: .missing,
                        message:
                            "The topic dropped transactions that this node has not read, and no snapshot has them. "
                            + "Run `martlet snapshot make` on a node that has them."))
            }
        }
    }

    private mutating func judgeReading(_ facts: AgentFacts) {
        let progress = facts.consumer
        if let problem = progress.problem { add(.reading, "Reading fails: \(problem)") }
        guard let steppedAt = progress.steppedAt else {
            if progress.problem == nil { add(.starting, "The topic has not been read since the start.") }
            return
        }
        let still = facts.now - steppedAt
        if still > Self.stillness { add(.stuck, "Reading has made no progress for \(still.wholeSeconds) s.") }
    }

    private mutating func judgeLag(_ lags: [ConsumerProgress.Lag], _ limit: HTTPConfiguration.ReadyLag) {
        switch limit {
        case .messages(let most):
            let count = lags.reduce(0) { $0 + $1.messages }
            if count > most { add(.lag, "\(count) messages wait to be read; http.readyLag is \(most).") }
        case .time(let most):
            guard let worst = lags.max(by: { $0.time < $1.time }), worst.time > most else { return }
            add(
                .lag,
                "Partition \(worst.partition) is \(worst.time.wholeSeconds) s behind (\(worst.messages) messages); "
                    + "http.readyLag is \(most.wholeSeconds) s.")
        }
    }

    /// The document that `/readyz` returns.
    var document: [String: Any?] {
        [
            "ready": isReady,
            "reasons": reasons.map { ["code": $0.code.rawValue, "message": $0.message] as [String: Any?] },
            "warnings": warnings.map { ["code": $0.code.rawValue, "message": $0.message] as [String: Any?] },
        ]
    }
}

extension Duration {
    var wholeSeconds: Int64 { components.seconds }
    var inSeconds: Double { self / .seconds(1) }
}
