import MartletSync
import MartletTestSupport
import Synchronization

/// A bus whose producers store a number of messages, lose later ones, and are then broken for good.
final class FaultyBus: ForwardingBus {
    /// How one producer fails.
    struct Fault: Sendable {
        /// The number of messages that are stored.
        var stored: Int
        /// How many of those are acknowledged.
        var acknowledged: Int
        /// The number of further messages that are accepted and lost.
        var lost: Int
    }

    let inner: InMemoryBus
    private let faults: Mutex<[Fault]>
    private let refusals: Mutex<Int>

    /// - Parameters:
    ///   - faults: the faults of the first producers, in order; later producers work.
    ///   - refusals: how many times making a producer fails.
    init(_ inner: InMemoryBus, faults: [Fault] = [], refusals: Int = 0) {
        self.inner = inner
        self.faults = Mutex(faults)
        self.refusals = Mutex(refusals)
    }

    func makeProducer(acknowledge: @escaping @Sendable (Acknowledgement) -> Void) throws(BusError) -> any BusProducer {
        let isRefused = refusals.withLock { left in
            defer { left = max(0, left - 1) }
            return left > 0
        }
        if isRefused { throw BusError(.unreachable, "no broker", isRetriable: true) }
        guard let fault = faults.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else {
            return try inner.makeProducer(acknowledge: acknowledge)
        }
        return FaultyProducer(try inner.makeProducer { _ in }, fault, acknowledge)
    }
}

private final class FaultyProducer: BusProducer {
    private struct State {
        var sent = 0
        var unanswered: [UInt64] = []
    }

    private let inner: any BusProducer
    private let fault: FaultyBus.Fault
    private let acknowledge: @Sendable (Acknowledgement) -> Void
    private let state = Mutex(State())

    init(
        _ inner: any BusProducer, _ fault: FaultyBus.Fault, _ acknowledge: @escaping @Sendable (Acknowledgement) -> Void
    ) {
        self.inner = inner
        self.fault = fault
        self.acknowledge = acknowledge
    }

    func send(_ message: OutgoingMessage) throws(BusError) {
        let number = state.withLock { state in
            state.sent += 1
            if state.sent > fault.acknowledged, state.sent <= fault.stored + fault.lost {
                state.unanswered.append(message.tag)
            }
            return state.sent
        }
        if number > fault.stored + fault.lost { throw BusError(.fatal, "fenced") }
        if number <= fault.stored { try inner.send(message) }
        if number <= fault.acknowledged {
            acknowledge(
                Acknowledgement(
                    tag: message.tag, result: .success(PartitionPosition(partition: 0, offset: Int64(number)))))
        }
    }

    func flush(timeout: Duration) -> Bool { state.withLock { $0.unanswered.isEmpty } }

    func close() {
        inner.close()
        let unanswered = state.withLock { state in
            defer { state.unanswered = [] }
            return state.unanswered
        }
        for tag in unanswered { acknowledge(Acknowledgement(tag: tag, result: .failure(BusError(.closed, "closed")))) }
    }
}
