import MartletBus
import Synchronization

/// Sends records to any of an export's topics, and waits until the broker has acknowledged them.
///
/// After an error it is of no more use. Used by one thread.
final class ExportSender {
    private struct Place: Hashable {
        var topic: String
        var partition: Int32
    }

    private struct State {
        var unanswered: [UInt64: (size: Int, topic: String)] = [:]
        /// Where the broker has stored records since the last look.
        var offsets: [Place: [Int64]] = [:]
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

    private let answers: Answers
    private let producer: any BusProducer
    private let mayContinue: () throws -> Void
    private var lastTag: UInt64 = 0
    /// The offset of the next record of each partition, if nobody else writes there.
    private var next: [Place: Int64] = [:]

    /// - Parameter mayContinue: called at intervals while it waits; throws to end the wait.
    init(_ bus: any Bus, mayContinue: @escaping () throws -> Void) throws {
        self.mayContinue = mayContinue
        let answers = Answers()
        self.answers = answers
        producer = try bus.makeProducer { acknowledgement in
            answers.state.withLock { state in
                guard let sent = state.unanswered.removeValue(forKey: acknowledgement.tag) else { return }
                state.bytes -= sent.size
                switch acknowledgement.result {
                case .success(let position):
                    state.offsets[Place(topic: sent.topic, partition: position.partition), default: []].append(
                        position.offset)
                case .failure(let error): state.failure = state.failure ?? ExportSender.described(error, sent.topic)
                }
            }
            answers.signal.signal()
        }
    }

    deinit { producer.close() }

    /// Drops what is still on its way.
    ///
    /// - Parameter isFlushing: whether to wait a moment for the last acknowledgements.
    /// - Returns: false if the broker may still get records that it has not acknowledged.
    @discardableResult
    func close(isFlushing: Bool = false) -> Bool {
        if isFlushing { _ = producer.flush(timeout: .seconds(1)) }
        let isSettled = answers.state.withLock { $0.unanswered.isEmpty && $0.failure == nil }
        producer.close()
        return isSettled
    }

    /// - Throws: ``/MartletBus/BusError`` when any record so far was not delivered; what `mayContinue` throws.
    func send(_ message: OutgoingMessage, to topic: String) throws {
        let size = message.payload.count + message.key.count
        try wait { $0.unanswered.isEmpty || $0.bytes + size <= Self.maxInFlightBytes }
        lastTag += 1
        var message = message
        message.topic = topic
        message.tag = lastTag
        var wasAlone = false
        while true {
            let tag = message.tag
            answers.state.withLock { state in
                state.unanswered[tag] = (size, topic)
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
                guard error.code == .queueFull else { throw Self.described(error, topic) }
                guard others == 0 else {
                    try wait { $0.unanswered.count < others }
                    continue
                }
                // The last record may be in the queue for a moment after it was acknowledged.
                try mayContinue()
                guard !wasAlone else { throw Self.exceedsQueue(size, topic) }
                wasAlone = true
                _ = producer.flush(timeout: .seconds(1))
            }
        }
    }

    /// Waits until the broker has acknowledged everything that was sent.
    func finish() throws { try wait { $0.unanswered.isEmpty } }

    /// Notes where the next record of each partition of a topic will be.
    func expect(_ offsets: [Int64], in topic: String) {
        for (partition, offset) in offsets.enumerated() {
            next[Place(topic: topic, partition: Int32(partition))] = offset
        }
    }

    /// Returns the offsets of the next records of a topic, as far as they are known; 0 for other partitions.
    func expected(in topic: String) -> [Int64] {
        let known = next.filter { $0.key.topic == topic }
        let count = (known.keys.map(\.partition).max() ?? -1) + 1
        return (0..<count).map { known[Place(topic: topic, partition: $0)] ?? 0 }
    }

    /// Returns the topics whose records since the last call do not follow each other: somebody else has written there,
    /// or the topic is another one of the same name. Call it when everything is acknowledged.
    func takeDisturbed() -> Set<String> {
        let offsets = answers.state.withLock { state in
            defer { state.offsets = [:] }
            return state.offsets
        }
        var disturbed: Set<String> = []
        for (place, found) in offsets {
            // The broker had a record already when it was sent again, and did not say where.
            guard found.allSatisfy({ $0 >= 0 }) else {
                next[place] = nil
                continue
            }
            for offset in found.sorted() {
                if let expected = next[place], expected != offset { disturbed.insert(place.topic) }
                next[place] = offset + 1
            }
        }
        return disturbed
    }

    private static func exceedsQueue(_ size: Int, _ topic: String) -> BusError {
        var error = BusError(
            .messageTooLarge, "topic \(topic): a record of \(size) bytes does not fit into the producer's queue",
            isRetriable: false)
        error.hint = "Raise kafka.producerQueueBytes"
        return error
    }

    private static func described(_ error: BusError, _ topic: String) -> BusError {
        var error = error
        error.message = "topic \(topic): \(error.message)"
        if error.code == .messageTooLarge {
            error.hint = "Raise max.message.bytes of the topic, and message.max.bytes in kafka.properties"
        }
        return error
    }

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
