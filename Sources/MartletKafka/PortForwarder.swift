import Foundation
import MartletBus
import Synchronization

/// Listens on a fixed port of the loopback interface and passes Kafka connections on to another port.
///
/// Brokers tell clients their own address, and clients then connect to it. To keep clients on the fixed port, the
/// forwarder puts that port into those answers, see ``BrokerPortRewriter``. Each connection has three threads, which is
/// fine for a development broker.
final class PortForwarder: Sendable {
    private struct State {
        var sockets: Set<Int32> = []
        var isClosed = false
    }

    private let listener: Int32
    private let from: UInt16
    private let to: UInt16
    private let state = Mutex(State())
    private let threads = DispatchGroup()

    init(from: UInt16, to: UInt16) throws(BusError) {
        self.from = from
        self.to = to
        listener = try LoopbackSocket.listen(port: from)
        start("martlet-forwarder") { [self] in accept() }
    }

    /// Cuts all connections, frees the port, and waits for the threads. Must not be called on one of them.
    func close() {
        let isFirst = state.withLock { state in
            defer { state.isClosed = true }
            // This wakes the threads; each connection closes its own sockets.
            for socket in state.sockets { LoopbackSocket.shutDown(socket) }
            return !state.isClosed
        }
        guard isFirst else { return }
        LoopbackSocket.shutDown(listener)
        threads.wait()
        LoopbackSocket.close(listener)
    }

    private func start(_ name: String, _ body: @escaping @Sendable () -> Void) {
        threads.enter()
        let thread = Thread { [threads] in
            body()
            threads.leave()
        }
        thread.name = name
        thread.start()
    }

    private func accept() {
        while let client = LoopbackSocket.accept(listener) {
            guard let broker = LoopbackSocket.connect(port: to) else {
                LoopbackSocket.close(client)
                continue
            }
            let isOpen = state.withLock { state in
                if !state.isClosed { state.sockets.formUnion([client, broker]) }
                return !state.isClosed
            }
            guard isOpen else {
                LoopbackSocket.close(client)
                LoopbackSocket.close(broker)
                return
            }
            let rewriter = BrokerPortRewriter(from: to, to: from)
            let pipe = KafkaPipe(client: client, broker: broker, rewriter: rewriter)
            let halves = DispatchGroup()
            for half in [pipe.passRequests, pipe.passResponses] {
                halves.enter()
                start("martlet-forward") {
                    half()
                    // This ends the other direction too.
                    LoopbackSocket.shutDown(client)
                    LoopbackSocket.shutDown(broker)
                    halves.leave()
                }
            }
            start("martlet-forward") { [self] in
                halves.wait()
                state.withLock { $0.sockets.subtract([client, broker]) }
                LoopbackSocket.close(client)
                LoopbackSocket.close(broker)
            }
        }
    }
}
