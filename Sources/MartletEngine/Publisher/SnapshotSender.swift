package import MartletBus
import Synchronization

/// Sends the messages of a snapshot, and waits until the broker has acknowledged them.
package final class SnapshotSender {
    private struct State {
        var unanswered = 0
        var bytes: [UInt64: Int] = [:]
        var failure: BusError?
    }

    private final class Answers: Sendable {
        let state = Mutex(State())
        let signal = WakeSignal()
    }

    private let answers: Answers
    private let producer: any BusProducer
    private let maxInFlightBytes: Int
    private let patience: Duration
    private let isStopped: () -> Bool

    private let limit: MessageLimit

    package init(
        _ bus: any Bus, _ limit: MessageLimit, maxInFlightBytes: Int, patience: Duration = .seconds(60),
        isStopped: @escaping () -> Bool = { false }
    ) throws {
        self.isStopped = isStopped
        self.maxInFlightBytes = maxInFlightBytes
        self.patience = patience
        self.limit = limit
        let answers = Answers()
        self.answers = answers
        producer = try bus.makeProducer(maxBatchBytes: limit.batchBytes) { acknowledgement in
            answers.state.withLock { state in
                state.unanswered -= 1
                state.bytes[acknowledgement.tag] = nil
                if case .failure(let error) = acknowledgement.result { state.failure = state.failure ?? error }
            }
            answers.signal.signal()
        }
    }

    deinit { producer.close() }

    /// - Throws: ``/MartletBus/BusError`` when any message so far was not delivered.
    package func send(_ message: OutgoingMessage) throws {
        try wait { $0.bytes.isEmpty || $0.bytes.values.reduce(0, +) + message.payload.count <= maxInFlightBytes }
        while true {
            answers.state.withLock { state in
                state.unanswered += 1
                state.bytes[message.tag] = message.payload.count
            }
            do throws(BusError) {
                return try producer.send(message)
            } catch {
                let unanswered = answers.state.withLock { state in
                    state.unanswered -= 1
                    state.bytes[message.tag] = nil
                    return state.unanswered
                }
                guard error.code == .queueFull else { throw noted(error) }
                try wait { $0.unanswered < unanswered || $0.unanswered == 0 }
            }
        }
    }

    /// Waits until the broker has acknowledged everything that was sent.
    package func finish() throws {
        try wait { $0.unanswered == 0 }
    }

    /// Lowers the limit, so that the messages of the next attempt fit.
    private func noted(_ error: BusError) -> BusError {
        if error.code == .messageTooLarge { limit.noteRefused() }
        return error
    }

    private func wait(until isDone: (State) -> Bool) throws {
        var last = -1
        var deadline = ContinuousClock.now + patience
        while true {
            let (done, unanswered, failure) = answers.state.withLock { (isDone($0), $0.unanswered, $0.failure) }
            if let failure { throw noted(failure) }
            if isStopped() { throw BusError(.closed, "the snapshot was cancelled") }
            if done { return }
            if unanswered != last { deadline = .now + patience }
            last = unanswered
            guard ContinuousClock.now < deadline else {
                throw BusError(.timedOut, "the broker does not answer", isRetriable: true)
            }
            answers.signal.wait(timeout: .milliseconds(500))
        }
    }
}
