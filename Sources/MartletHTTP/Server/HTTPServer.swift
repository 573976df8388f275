import Dispatch
import Foundation
public import MartletAgent
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// A small HTTP/1.1 server on one thread. Other threads make the answers, each one at a time: see ``AnswerQueues``.
package final class HTTPServer: Sendable {
    /// The address that it listens on, with the assigned port.
    package let address: ListenAddress
    private let group: MultiThreadedEventLoopGroup
    private let listener: any Channel
    private let queues: AnswerQueues
    private let connections: Connections

    /// The open connections.
    private final class Connections: Sendable {
        private let open = Mutex<[ObjectIdentifier: any Channel]>([:])
        private let count = DispatchGroup()
        private let stopping = Mutex(false)

        /// True once the server stops.
        var isStopping: Bool { stopping.withLock { $0 } }

        func noteStopping() { stopping.withLock { $0 = true } }

        /// - Returns: false if there are too many.
        func add(_ channel: any Channel, max: Int) -> Bool {
            let id = ObjectIdentifier(channel)
            let isIn = open.withLock { open in
                guard open.count < max else { return false }
                open[id] = channel
                return true
            }
            guard isIn else { return false }
            count.enter()
            channel.closeFuture.whenComplete { [self] _ in
                _ = open.withLock { $0.removeValue(forKey: id) }
                count.leave()
            }
            return true
        }

        var all: [any Channel] { open.withLock { Array($0.values) } }

        func waitUntilAllAreClosed(_ timeout: Duration) {
            _ = count.wait(timeout: .now() + timeout / .seconds(1))
        }
    }

    /// Listens, and answers requests from now on.
    ///
    /// - Parameters:
    ///   - rules: decides which requests are answered.
    ///   - isQuick: returns true if the answer to a request never blocks. Others are not waited for.
    ///   - answer: called for these requests on a thread that it may block. So may the closure that it returns.
    /// - Throws: ``HTTPServerError`` if the address can't be listened on.
    package init(
        _ address: ListenAddress, rules: RequestGuard, limits: HTTPLimits = .init(),
        isQuick: @escaping @Sendable (HTTPRequest) -> Bool = { _ in false },
        answer: @escaping @Sendable (HTTPRequest) -> HTTPAnswer
    ) throws(HTTPServerError) {
        let queues = AnswerQueues(isQuick: isQuick)
        self.queues = queues
        let connections = Connections()
        self.connections = connections
        group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 64)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                guard connections.add(channel, max: limits.maxConnections) else { return channel.close() }
                return channel.pipeline.configureHTTPServerPipeline(withDecoderLimitConfiguration: limits.decoder)
                    .flatMapThrowing {
                        try channel.pipeline.syncOperations.addHandler(
                            HTTPConnectionHandler(
                                limits: limits, rules: rules, queues: queues, isStopping: { connections.isStopping },
                                answer: answer))
                    }
            }
        do {
            listener = try bootstrap.bind(host: address.host, port: address.port).wait()
        } catch {
            try? group.syncShutdownGracefully()
            throw HTTPServerError(address, error)
        }
        var bound = address
        bound.port = listener.localAddress?.port ?? address.port
        self.address = bound
    }

    /// Accepts no more connections, lets requests in progress be answered, refuses those that wait for a condition,
    /// ends streams, and closes the rest. Blocks the calling thread, for about the grace period at most.
    package func stop(grace: Duration = .seconds(2)) {
        connections.noteStopping()
        try? listener.close().wait()
        for channel in connections.all {
            channel.pipeline.fireUserInboundEventTriggered(ServerStops())
            channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        }
        connections.waitUntilAllAreClosed(grace)
        for channel in connections.all { channel.close(promise: nil) }
        // An answer that is still being made goes to the event loop when it is done.
        let last = DispatchGroup()
        for queue in queues.all { queue.async(group: last) {} }
        _ = last.wait(timeout: .now() + grace / .seconds(1))
        try? group.syncShutdownGracefully()
    }
}

/// Tells a connection that its stream has to end.
struct ServerStops: Sendable {}

/// An address that can't be listened on.
public struct HTTPServerError: Error, Sendable, Equatable, CustomStringConvertible {
    public var address: ListenAddress
    /// The operating system's error number, if it is one of its errors.
    public var errno: CInt?
    public var message: String

    init(_ address: ListenAddress, _ error: any Error) {
        self.address = address
        errno = (error as? IOError)?.errnoCode
        message =
            switch errno {
            case EADDRINUSE: "another program listens there; choose another port, or stop that program"
            case EADDRNOTAVAIL: "no interface of this machine has this address"
            case EACCES: "ports below 1024 need special privileges; choose another port"
            default: "\(error)"
            }
    }

    public var description: String { "http.listen: can't listen on \(address): \(message)." }
}
