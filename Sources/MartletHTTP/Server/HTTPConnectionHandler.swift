import Foundation
import NIOCore
import NIOHTTP1

/// One connection: takes a request, has it answered on another thread, and closes the connection if the client takes
/// too long.
///
/// Runs on the connection's event loop. The handlers before it hold back the next request until this one is answered.
final class HTTPConnectionHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private enum State {
        /// No request, or one whose end has not arrived.
        case waiting(HTTPRequestHead?)
        case answering
        /// The answer is on its way to the client, which gets no other one before it has received this one.
        case sending
        case streaming(HTTPStreamWriter)
        /// The answer is the last one.
        case closing
    }

    private let limits: HTTPLimits
    private let rules: RequestGuard
    private let queues: AnswerQueues
    private let isStopping: @Sendable () -> Bool
    private let answer: @Sendable (HTTPRequest) -> HTTPAnswer
    private var state = State.waiting(nil)
    private var deadline: Scheduled<Void>?

    /// - Parameters:
    ///   - queues: where `answer` is called.
    ///   - isStopping: returns true once the server stops. Requests that wait for a condition, or for a stream, are
    ///     refused then.
    ///   - answer: may block, unless the request is a quick one.
    init(
        limits: HTTPLimits, rules: RequestGuard, queues: AnswerQueues, isStopping: @escaping @Sendable () -> Bool,
        answer: @escaping @Sendable (HTTPRequest) -> HTTPAnswer
    ) {
        self.limits = limits
        self.rules = rules
        self.queues = queues
        self.isStopping = isStopping
        self.answer = answer
    }

    func channelActive(context: ChannelHandlerContext) {
        closeAfter(limits.requestTimeout, context)
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
        if case .streaming(let writer) = state { writer.abandon() }
        // Releases the stream.
        state = .closing
        context.fireChannelInactive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ServerStops, case .streaming(let writer) = state { writer.end() }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // The error doesn't matter: the client finds the connection closed, and nothing here depends on it.
        context.close(promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch (unwrapInboundIn(data), state) {
        case (.head(let head), .waiting):
            let request = HTTPRequest(head)
            state = .waiting(head)
            guard let refusal = rules.refusal(of: request) else { return }
            // Refused without waiting for the request's body.
            respond(refusal, to: head, closes: true, context)
        case (.end, .waiting(let head?)):
            state = .answering
            let request = HTTPRequest(head)
            obtain({ [answer] in answer(request) }, to: head, on: queues.queue(for: request), context)
        case (.head, _), (.body, _), (.end, _): break
        }
    }

    /// Has the request answered on the other thread, and looks again later if it can't be answered yet.
    private func obtain(
        _ answer: @escaping @Sendable () -> HTTPAnswer, to head: HTTPRequestHead, on queue: DispatchQueue,
        _ context: ChannelHandlerContext
    ) {
        closeAfter(limits.responseTimeout, context)
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let loop = context.eventLoop
        queue.async {
            let answer = answer()
            loop.execute {
                let (handler, context) = bound.value
                guard case .answering = handler.state, context.channel.isActive else { return }
                switch answer {
                case .now(let response): handler.respond(response, to: head, closes: !head.isKeepAlive, context)
                case .later where handler.isStopping(), .stream where handler.isStopping():
                    handler.respond(Self.stopping, to: head, closes: true, context)
                case .stream(let response, let stream):
                    handler.begin(stream, response, on: queue, context)
                case .later(let look):
                    loop.scheduleTask(in: Self.lookInterval) {
                        let (handler, context) = bound.value
                        guard case .answering = handler.state, context.channel.isActive else { return }
                        handler.obtain(
                            { look().map { .now($0) } ?? .later(look: look) }, to: head, on: queue, context)
                    }
                }
            }
        }
    }

    private func begin(
        _ stream: any HTTPStream, _ response: HTTPResponse, on queue: DispatchQueue, _ context: ChannelHandlerContext
    ) {
        deadline?.cancel()
        let writer = HTTPStreamWriter(stream, limits: limits, queue: queue, context: context, wrap: wrapOutboundOut)
        state = .streaming(writer)
        var head = HTTPResponseHead(
            version: .http1_1, status: HTTPResponseStatus(statusCode: response.status),
            headers: response.streamHeaders)
        head.headers.add(name: "Connection", value: "close")
        writer.begin(head)
    }

    private static let stopping = HTTPResponse.text(503, "The agent stops. Try again once it runs.")

    /// The time between two calls of `look`.
    private static let lookInterval = TimeAmount.milliseconds(20)

    private func respond(
        _ response: HTTPResponse, to request: HTTPRequestHead, closes: Bool, _ context: ChannelHandlerContext
    ) {
        state = closes ? .closing : .sending
        closeAfter(limits.responseTimeout, context)
        var head = HTTPResponseHead(
            version: .http1_1, status: HTTPResponseStatus(statusCode: response.status), headers: response.allHeaders)
        if closes { head.headers.add(name: "Connection", value: "close") }
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let sent = context.eventLoop.makePromise(of: Void.self)
        sent.futureResult.whenComplete { result in
            let (handler, context) = bound.value
            guard case .success = result else { return context.close(promise: nil) }
            handler.end(closes: closes, context)
        }
        guard request.method != .HEAD else {
            return context.writeAndFlush(wrapOutboundOut(.head(head)), promise: sent)
        }
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: response.body)))), promise: sent)
    }

    /// Ends a response that the client has received, or the system has for it. The next request may come out of the
    /// pipeline during that, and not before: answers to a client that sends requests and receives nothing would take
    /// all memory.
    private func end(closes: Bool, _ context: ChannelHandlerContext) {
        if !closes {
            state = .waiting(nil)
            closeAfter(limits.requestTimeout, context)
        }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        if closes { context.close(promise: nil) }
    }

    private func closeAfter(_ time: Duration, _ context: ChannelHandlerContext) {
        deadline?.cancel()
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        deadline = context.eventLoop.scheduleTask(in: time.timeAmount) { bound.value.close(promise: nil) }
    }
}
