import MartletSync
import MartletTestSupport
import Synchronization

/// A bus that acknowledges messages when a test says so. Until then, messages are stored, or go to a topic that is
/// gone.
final class HoldingBus: ForwardingBus {
    private struct State {
        var holds = false
        var loses = false
        var held: [@Sendable () -> Void] = []
    }

    let inner: InMemoryBus
    private let state = Mutex(State())

    init(_ inner: InMemoryBus) { self.inner = inner }

    /// - Parameter losing: whether messages that are sent from now on are stored nowhere.
    func hold(losing: Bool) { state.withLock { ($0.holds, $0.loses) = (true, losing) } }

    /// Acknowledges all held messages, and holds no more.
    func release() {
        let held = state.withLock { state in
            defer { state = State() }
            return state.held
        }
        for acknowledge in held { acknowledge() }
    }

    func makeProducer(acknowledge: @escaping @Sendable (Acknowledgement) -> Void) throws(BusError) -> any BusProducer {
        let stored = try inner.makeProducer { [self] answer in take(answer, acknowledge) }
        return HoldingProducer(inner: stored) { [self] message in
            guard state.withLock({ $0.loses }) else { return false }
            let position = PartitionPosition(partition: 0, offset: 0)
            take(Acknowledgement(tag: message.tag, result: .success(position)), acknowledge)
            return true
        }
    }

    private func take(_ answer: Acknowledgement, _ acknowledge: @escaping @Sendable (Acknowledgement) -> Void) {
        let isHeld = state.withLock { state in
            if state.holds { state.held.append { acknowledge(answer) } }
            return state.holds
        }
        if !isHeld { acknowledge(answer) }
    }
}

private final class HoldingProducer: BusProducer {
    private let inner: any BusProducer
    private let loses: @Sendable (OutgoingMessage) -> Bool

    init(inner: any BusProducer, loses: @escaping @Sendable (OutgoingMessage) -> Bool) {
        self.inner = inner
        self.loses = loses
    }

    func send(_ message: OutgoingMessage) throws(BusError) {
        if !loses(message) { try inner.send(message) }
    }

    func flush(timeout: Duration) -> Bool { inner.flush(timeout: timeout) }

    func close() { inner.close() }
}
