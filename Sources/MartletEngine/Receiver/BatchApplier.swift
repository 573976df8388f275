import GRDB
import MartletBus
import MartletCore
import MartletReplica
import MartletStore
import MartletWire

/// Decodes and applies batches of messages.
struct BatchApplier {
    let session: ReplicaSession
    let inbound: Inbound
    /// The time after which a commit takes no more messages, if others could be waiting for the write lock.
    let applyTime: Duration
    /// How many times as long a commit takes messages if nobody could.
    private static let timesAlone = 5
    let topic: String

    /// Opens and decodes messages; many of them on all processors.
    ///
    /// - Parameter isAhead: true if a thread is applying other messages meanwhile, and needs a processor.
    func decode(_ messages: [IncomingMessage], isAhead: Bool = false) -> [DecodedMessage] {
        inbound.messageGuard.refresh()
        return DecodedMessage.all(
            messages, DecodedMessage.Reader(messageGuard: inbound.messageGuard, topic: topic, node: session.node),
            isAhead: isAhead)
    }

    /// Applies messages that were decoded before, in order, and stores the offsets after them. See
    /// ``SyncEngine/apply(_:topic:)``.
    ///
    /// - Parameter follows: whether the report lists each applied transaction.
    func apply(_ messages: [DecodedMessage], follows: Bool = false) throws -> ApplyReport {
        var report = ApplyReport()
        var next = 0
        repeat {
            // Outside of the SQLite transaction, in which other writers wait.
            let assembled = try next < messages.count ? assemble(messages[next]) : nil
            try session.transaction(keepsCache: true) { db, context in
                let begin = session.instant()
                var end = begin + applyTime
                func isOver() -> Bool {
                    let now = session.instant()
                    guard now >= end else { return false }
                    // A larger commit writes fewer pages. Whoever opens the file meanwhile is seen next time.
                    let last = begin + applyTime * Self.timesAlone
                    guard now < last, session.connection.isAlone() else { return true }
                    end = min(now + applyTime, last)
                    return false
                }
                var receiver = Receiver(inbound, db, context, topic: topic, assembled: assembled)
                let first = next
                while next < messages.count {
                    let message = messages[next]
                    if next > first, message.mayComplete || isOver() { break }
                    next += 1
                    let applied = report.applied
                    try receiver.receive(message, &report)
                    guard follows, report.applied > applied, let traced = tracedTransaction(message) else { continue }
                    report.traced.append(traced)
                }
                receiver.finish(report)
            }
        } while next < messages.count
        return report
    }

    /// Assembles and decodes a transaction, if the message is the last missing chunk of it.
    private func assemble(_ message: DecodedMessage) throws -> AssembledTransaction? {
        guard case .success(let envelope) = message.envelope, let chunk = envelope.chunk, message.isIntact,
            envelope.origin != session.node, message.refusal == nil
        else { return nil }
        return try session.read { db in
            try AssembledTransaction(
                db, envelope, chunk, message.message.payload, inbound.messageGuard.configuration)
        }
    }

    /// Returns the transaction's trace for the log. Nil for a message that names no transaction.
    private func tracedTransaction(_ decoded: DecodedMessage) -> TracedTransaction? {
        guard let envelope = try? decoded.envelope.get() else { return nil }
        let given = inbound.traceHeaders.trace(of: decoded.message)
        return TracedTransaction(
            origin: envelope.origin, sequence: envelope.sequence,
            trace: given ?? TraceContext(origin: envelope.origin, sequence: envelope.sequence))
    }
}
