import MartletBus
import Synchronization

/// Sends records to any of an export's topics, and waits until the broker has acknowledged them.
///
/// After an error it is of no more use. Used by one thread.
final class ExportSender {
    private struct State {
        var unanswered: [UInt64: Int] = [:]
        var bytes = 0
        var failure: BusError?
    }

    private final class Answers: Sendable {
        let state = Mutex(State())
        let signal = WakeSignal()
    }

    private static let maxInFlightBytes = 8 << 20
    /// How long the broker may take for the next acknowledgement.
    private static let patience = Duration.seconds(60)

    private let answers = Answers()
    private let producer: any BusProducer
    private let mayContinue: () throws -> Void
    private var lastTag: UInt64 = 0

    /// - Parameter mayContinue: called at intervals while it waits; throws to end the wait.
    init(_ bus: any Bus, mayContinue: @escaping () throws -> Void) throws {
        self.mayContinue = mayContinue
        producer = try bus.makeProducer { [answers] acknowledgement in
            answers.state.withLock { state in
                state.bytes -= state.unanswered.removeValue(forKey: acknowledgement.tag) ?? 0
                if case .failure(let error) = acknowledgement.result { state.failure = state.failure ?? error }
            }
            answers.signal.signal()
        }
    }

    deinit { producer.close() }

    /// Drops what is still on its way.
    func close() { producer.close() }

    /// - Throws: ``/MartletBus/BusError`` when any record so far was not delivered; what `mayContinue` throws.
    func send(_ message: OutgoingMessage, to topic: String) throws {
        let size = message.payload.count + message.key.count
        try wait { $0.unanswered.isEmpty || $0.bytes + size <= Self.maxInFlightBytes }
        lastTag += 1
        var message = message
        message.topic = topic
        message.tag = lastTag
        while true {
            let tag = message.tag
            answers.state.withLock { state in
                state.unanswered[tag] = size
                state.bytes += size
            }
            do throws(BusError) {
                return try producer.send(message)
            } catch {
                let others = answers.state.withLock { state in
                    state.unanswered[tag] = nil
                    state.bytes -= size
                    return state.unanswered.count
                }
                guard error.code == .queueFull else { throw error }
                try wait { $0.unanswered.count < others || $0.unanswered.isEmpty }
            }
        }
    }

    /// Waits until the broker has acknowledged everything that was sent.
    func finish() throws { try wait { $0.unanswered.isEmpty } }

    private func wait(until isDone: (State) -> Bool) throws {
        var last = -1
        var deadline = ContinuousClock.now + Self.patience
        while true {
            let (done, count, failure) = answers.state.withLock { (isDone($0), $0.unanswered.count, $0.failure) }
            if let failure { throw failure }
            if done { return }
            try mayContinue()
            if count != last { deadline = .now + Self.patience }
            last = count
            guard ContinuousClock.now < deadline else {
                throw BusError(.timedOut, "the broker does not acknowledge exported records", isRetriable: true)
            }
            answers.signal.wait(timeout: .milliseconds(200))
        }
    }
}
