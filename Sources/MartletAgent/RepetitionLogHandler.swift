import Foundation
package import Logging
import Synchronization

/// Keeps the log of a long outage short: leaves out repeated messages about the same problem for a while.
///
/// A message is about a problem if it has `error`, `reason` or `facility` (librdkafka's) in its metadata. It is logged
/// when it is new, when it had not come for ``quietTime``, and every ``interval`` while it goes on, then with
/// `repeated`: how many were left out since. A notice about anything else, such as that the configuration is reread,
/// makes all problems new. At level `debug` and below nothing is left out.
package struct RepetitionLogHandler: WrappingLogHandler {
    package static let interval = Duration.seconds(600)
    package static let quietTime = Duration.seconds(180)

    package var handler: any LogHandler
    // Copies of a logger share this.
    private let problems = RecentProblems()
    private let now: @Sendable () -> ContinuousClock.Instant

    package init(_ handler: any LogHandler, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        self.handler = handler
        self.now = now
    }

    package func log(event: LogEvent) {
        guard logLevel > .debug, let name = name(of: event) else {
            if event.level >= .notice { problems.forget() }
            return handler.log(event: event)
        }
        guard let leftOut = problems.note(name, at: now()) else { return }
        var event = event
        if leftOut > 0 { event.metadata = (event.metadata ?? [:]).merging(["repeated": "\(leftOut)"]) { $1 } }
        handler.log(event: event)
    }

    /// Returns a text that is equal for messages about the same problem. Nil for a message that is not about a problem.
    private func name(of event: LogEvent) -> String? {
        let all = handler.metadata.merging(event.metadata ?? [:]) { $1 }
        guard ["error", "reason", "facility"].contains(where: { all[$0] != nil }) else { return nil }
        let parts = all.sorted { $0.key < $1.key }.map { "\($0.key)=\(Self.lasting("\($0.value)"))" }
        return "\(event.level) \(Self.lasting("\(event.message)")) \(parts)"
    }

    /// Returns the text without the parts that differ each time: librdkafka's note on how long it took and how often it
    /// came; the producer's ID, since each attempt makes a new one, and how much it was about to send.
    private static func lasting(_ text: String) -> String {
        if text.contains("PID{") { return text.filter { !$0.isNumber && $0 != "-" } }
        guard let note = text.range(of: "(after ") else { return text }
        return text[..<note.lowerBound]
            + String(text[note.lowerBound...].filter { !$0.isNumber })
            .replacingOccurrences(of: ",  identical error(s) suppressed", with: "")
    }

    /// The known problems. Safe to use from any thread.
    private final class RecentProblems: Sendable {
        private struct Problem {
            var seenAt: ContinuousClock.Instant
            var loggedAt: ContinuousClock.Instant
            var leftOut = 0
        }

        /// A message may name any number of things, so the number of known problems is limited.
        private static let limit = 500
        private let known = Mutex<[String: Problem]>([:])

        func forget() { known.withLock { $0 = [:] } }

        /// - Returns: how many messages were left out before this one. Nil if this one is left out.
        func note(_ name: String, at now: ContinuousClock.Instant) -> Int? {
            known.withLock { known in
                guard var problem = known[name] else {
                    if known.count >= Self.limit { known = known.filter { now - $0.value.seenAt < quietTime } }
                    if known.count >= Self.limit { known = [:] }
                    known[name] = Problem(seenAt: now, loggedAt: now)
                    return 0
                }
                let isDue = now - problem.seenAt > quietTime || now - problem.loggedAt >= interval
                problem.seenAt = now
                defer { known[name] = problem }
                guard isDue else {
                    problem.leftOut += 1
                    return nil
                }
                defer { problem.leftOut = 0 }
                problem.loggedAt = now
                return problem.leftOut
            }
        }
    }
}
