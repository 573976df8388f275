import Dispatch
import MartletSync
import MartletTestSupport
import Synchronization

/// A bus whose topic refuses batches above a number of bytes, like a broker with `max.message.bytes`. Its producers
/// collect messages in batches, and are broken for good once a batch was refused.
final class LimitedBus: ForwardingBus {
    let inner: InMemoryBus
    /// The batch size of a producer by default, as in librdkafka.
    static let defaultBatchBytes = 1_000_000

    private struct State {
        var limit: Int
        var tellsLimit: Bool
        var producers = 0
        var questions = 0
    }

    private let state: Mutex<State>

    /// - Parameter tellsLimit: false for a broker that doesn't report the topic's settings.
    init(_ inner: InMemoryBus, limit: Int, tellsLimit: Bool = true) {
        self.inner = inner
        state = Mutex(State(limit: limit, tellsLimit: tellsLimit))
    }

    var limit: Int {
        get { state.withLock { $0.limit } }
        set { state.withLock { $0.limit = newValue } }
    }

    /// The number of producers that were made.
    var producerCount: Int { state.withLock { $0.producers } }
    /// The number of times that the limit was read.
    var questionCount: Int { state.withLock { $0.questions } }

    func makeProducer(acknowledge: @escaping @Sendable (Acknowledgement) -> Void) throws(BusError) -> any BusProducer {
        try makeProducer(maxBatchBytes: nil, acknowledge: acknowledge)
    }

    func makeProducer(
        maxBatchBytes: Int?, acknowledge: @escaping @Sendable (Acknowledgement) -> Void
    ) throws(BusError) -> any BusProducer {
        state.withLock { $0.producers += 1 }
        return LimitedProducer(
            self, try inner.makeProducer { _ in }, batchBytes: maxBatchBytes ?? Self.defaultBatchBytes, acknowledge)
    }

    func batchLimit(timeout: Duration) throws(BusError) -> Int? {
        try state.withLock { state throws(BusError) in
            state.questions += 1
            guard state.tellsLimit else { throw BusError(.unauthorized, "this user may not ask") }
            return state.limit
        }
    }
}

private final class LimitedProducer: BusProducer {
    private struct State {
        var batch: [OutgoingMessage] = []
        var bytes = 0
        var isBroken = false
    }

    private let bus: LimitedBus
    private let inner: any BusProducer
    private let batchBytes: Int
    private let acknowledge: @Sendable (Acknowledgement) -> Void
    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "limited-producer")
    /// The time for which a message waits for others to be sent with it.
    private static let linger = DispatchTimeInterval.milliseconds(20)

    init(
        _ bus: LimitedBus, _ inner: any BusProducer, batchBytes: Int,
        _ acknowledge: @escaping @Sendable (Acknowledgement) -> Void
    ) {
        self.bus = bus
        self.inner = inner
        self.batchBytes = batchBytes
        self.acknowledge = acknowledge
    }

    func send(_ message: OutgoingMessage) throws(BusError) {
        let size = message.payload.count + message.key.count
        let full = try state.withLock { state throws(BusError) -> [OutgoingMessage] in
            guard !state.isBroken else { throw BusError(.fatal, "a batch was refused") }
            var full: [OutgoingMessage] = []
            if state.bytes + size > batchBytes { swap(&full, &state.batch) }
            state.bytes = full.isEmpty ? state.bytes + size : size
            state.batch.append(message)
            return full
        }
        queue.async { self.deliver(full) }
        queue.asyncAfter(deadline: .now() + Self.linger) { [weak self] in self?.deliverRest() }
    }

    private func deliverRest() {
        deliver(
            state.withLock { state in
                defer { (state.batch, state.bytes) = ([], 0) }
                return state.batch
            })
    }

    private func deliver(_ batch: [OutgoingMessage]) {
        guard !batch.isEmpty else { return }
        let bytes = batch.reduce(0) { $0 + $1.payload.count + $1.key.count }
        let isTaken = state.withLock { state in
            if bytes > bus.limit { state.isBroken = true }
            return !state.isBroken
        }
        for message in batch {
            let result: Result<PartitionPosition, BusError> =
                isTaken
                ? .success(PartitionPosition(partition: 0, offset: 0))
                : .failure(BusError(.messageTooLarge, "the batch has \(bytes) bytes"))
            if isTaken { try? inner.send(message) }
            acknowledge(Acknowledgement(tag: message.tag, result: result))
        }
    }

    func flush(timeout: Duration) -> Bool {
        queue.sync { deliverRest() }
        return true
    }

    func close() {
        _ = flush(timeout: .zero)
        inner.close()
    }
}
