import Dispatch
import NIOCore
import NIOHTTP1

/// Writes a stream to one connection, a part at a time, and something now and then while there is nothing to write, so
/// that both sides notice when the other one is gone.
///
/// Runs on the connection's event loop.
final class HTTPStreamWriter {
    private enum State {
        /// The next part is being made.
        case reading
        /// A part, or a sign of life, is on its way to the client.
        case writing
        /// There is nothing to write.
        case idle
        case ended
    }

    /// A comment, which clients ignore.
    private static let signOfLife = ":\n\n"

    /// Nil once the response ends. The stream keeps the closure that wakes this, and so would never be released.
    private var stream: (any HTTPStream)?
    private let limits: HTTPLimits
    private let queue: DispatchQueue
    private let context: ChannelHandlerContext
    private let wrap: (HTTPServerResponsePart) -> NIOAny
    private var state = State.reading
    private var timer: Scheduled<Void>?

    /// - Parameters:
    ///   - queue: where the stream makes its parts.
    ///   - wrap: the handler's `wrapOutboundOut`.
    init(
        _ stream: any HTTPStream, limits: HTTPLimits, queue: DispatchQueue, context: ChannelHandlerContext,
        wrap: @escaping (HTTPServerResponsePart) -> NIOAny
    ) {
        self.stream = stream
        self.limits = limits
        self.queue = queue
        self.context = context
        self.wrap = wrap
    }

    func begin(_ head: HTTPResponseHead) {
        context.writeAndFlush(wrap(.head(head)), promise: nil)
        read()
    }

    /// Ends the response, because the server stops. A client that has not taken everything yet does not delay that.
    func end() {
        if case .writing = state { return close() }
        finish("")
    }

    /// Notes that the connection is closed.
    func abandon() {
        state = .ended
        stream = nil
        timer?.cancel()
    }

    private func read() {
        guard let stream else { return }
        state = .reading
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        queue.async { [loop = context.eventLoop] in
            let part = stream.next()
            loop.execute { bound.value.take(part) }
        }
    }

    private func take(_ part: HTTPStreamPart) {
        guard case .reading = state else { return }
        switch part {
        case .some(let text): write(text)
        case .last(let text): finish(text)
        case .nothing:
            state = .idle
            let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
            timer = context.eventLoop.scheduleTask(in: limits.heartbeatInterval.timeAmount) {
                guard case .idle = bound.value.state else { return }
                bound.value.write(Self.signOfLife)
            }
            stream?.whenChanged { [loop = context.eventLoop] in
                loop.execute {
                    // Otherwise the stream is read anyway when what is being written has arrived.
                    guard case .idle = bound.value.state else { return }
                    bound.value.timer?.cancel()
                    bound.value.read()
                }
            }
        }
    }

    private func write(_ text: String) {
        state = .writing
        closeAfter(limits.streamWriteTimeout(bytes: text.utf8.count))
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        let sent = context.eventLoop.makePromise(of: Void.self)
        sent.futureResult.whenComplete { result in
            let writer = bound.value
            guard case .writing = writer.state else { return }
            guard case .success = result else { return writer.close() }
            writer.timer?.cancel()
            writer.read()
        }
        context.writeAndFlush(wrap(.body(.byteBuffer(ByteBuffer(string: text)))), promise: sent)
    }

    private func finish(_ text: String) {
        guard !hasEnded else { return }
        state = .ended
        stream = nil
        closeAfter(limits.responseTimeout)
        if !text.isEmpty { context.write(wrap(.body(.byteBuffer(ByteBuffer(string: text)))), promise: nil) }
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        let sent = context.eventLoop.makePromise(of: Void.self)
        sent.futureResult.whenComplete { _ in bound.value.close(promise: nil) }
        context.writeAndFlush(wrap(.end(nil)), promise: sent)
    }

    private func close() {
        guard !hasEnded else { return }
        abandon()
        context.close(promise: nil)
    }

    private var hasEnded: Bool { if case .ended = state { true } else { false } }

    private func closeAfter(_ time: Duration) {
        timer?.cancel()
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        timer = context.eventLoop.scheduleTask(in: time.timeAmount) { bound.value.close(promise: nil) }
    }
}
