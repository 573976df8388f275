import Foundation
package import Logging
import Synchronization

/// Keeps the log of a long outage short: what tells of the same trouble again is left out for a while.
///
/// A message tells of a trouble where it has `error`, `reason` or `facility` (librdkafka's) among its metadata. It is
/// logged when it is new, when it had not come for ``quietTime``, and every ``interval`` while it goes on, then with
/// `repeated`: how many were left out since. After a notice of anything else, such as that the configuration is read
/// again, all troubles are new. At level `debug` and below nothing is left out.
package struct RepetitionLogHandler: WrappingLogHandler {
    package static let interval = Duration.seconds(600)
    package static let quietTime = Duration.seconds(180)

    package var handler: any LogHandler
    // Copies of a logger share it.
    private let troubles = Troubles()
    private let now: @Sendable () -> ContinuousClock.Instant

    package init(_ handler: any LogHandler, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        self.handler = handler
        self.now = now
    }

    package func log(event: LogEvent) {
        guard logLevel > .debug, let name = name(of: event) else {
            if event.level >= .notice { troubles.forget() }
            return handler.log(event: event)
        }
        guard let leftOut = troubles.note(name, at: now()) else { return }
        var event = event
        if leftOut > 0 { event.metadata = (event.metadata ?? [:]).merging(["repeated": "\(leftOut)"]) { $1 } }
        handler.log(event: event)
    }

    /// What messages have in common that tell of the same trouble. Nil for one that tells of none.
    private func name(of event: LogEvent) -> String? {
        let all = handler.metadata.merging(event.metadata ?? [:]) { $1 }
        guard ["error", "reason", "facility"].contains(where: { all[$0] != nil }) else { return nil }
        let parts = all.sorted { $0.key < $1.key }.map { "\($0.key)=\(Self.lasting("\($0.value)"))" }
        return "\(event.level) \(Self.lasting("\(event.message)")) \(parts)"
    }

    /// The text without what is another number each time: how long it took and how often it came, by librdkafka's note;
    /// which producer it was, since each attempt takes a new one, and how much that was about to send.
    private static func lasting(_ text: String) -> String {
        if text.contains("PID{") { return text.filter { !$0.isNumber && $0 != "-" } }
        guard let note = text.range(of: "(after ") else { return text }
        return text[..<note.lowerBound]
            + String(text[note.lowerBound...].filter { !$0.isNumber })
            .replacingOccurrences(of: ",  identical error(s) suppressed", with: "")
    }

    /// Which troubles there are, from any thread.
    private final class Troubles: Sendable {
        private struct Trouble {
            var seenAt: ContinuousClock.Instant
            var loggedAt: ContinuousClock.Instant
            var leftOut = 0
        }

        /// A message may name any number of things.
        private static let limit = 500
        private let known = Mutex<[String: Trouble]>([:])

        func forget() { known.withLock { $0 = [:] } }

        /// - Returns: how many were left out before this one, or nil where this one is.
        func note(_ name: String, at now: ContinuousClock.Instant) -> Int? {
            known.withLock { known in
                guard var trouble = known[name] else {
                    if known.count >= Self.limit { known = known.filter { now - $0.value.seenAt < quietTime } }
                    if known.count >= Self.limit { known = [:] }
                    known[name] = Trouble(seenAt: now, loggedAt: now)
                    return 0
                }
                let isDue = now - trouble.seenAt > quietTime || now - trouble.loggedAt >= interval
                trouble.seenAt = now
                defer { known[name] = trouble }
                guard isDue else {
                    trouble.leftOut += 1
                    return nil
                }
                defer { trouble.leftOut = 0 }
                trouble.loggedAt = now
                return trouble.leftOut
            }
        }
    }
}
