import MartletAgent
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// A real HTTP server on the loopback interface that records requests, and answers as it was told.
final class CollectorStub: Sendable {
    struct Request: Sendable {
        var method = ""
        var path = ""
        /// By names in lower case.
        var headers: [String: String] = [:]
        var body = ""
    }

    struct Response: Sendable {
        var status = 200
        var headers: [String: String] = [:]
        var body = "{}"
    }

    private final class Exchanges: Sendable {
        let requests = Mutex<[Request]>([])
        private let responses: [Response]

        init(_ responses: [Response]) { self.responses = responses }

        /// Returns nil if the request gets no answer.
        func add(_ request: Request) -> Response? {
            requests.withLock { requests in
                requests.append(request)
                return responses.isEmpty ? nil : responses[min(requests.count, responses.count) - 1]
            }
        }
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        private let exchanges: Exchanges
        private var request = Request()

        init(_ exchanges: Exchanges) { self.exchanges = exchanges }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head):
                request = Request(method: head.method.rawValue, path: head.uri)
                for (name, value) in head.headers { request.headers[name.lowercased()] = value }
            case .body(let part): request.body += String(decoding: part.readableBytesView, as: UTF8.self)
            case .end:
                guard let response = exchanges.add(request) else { return }
                var headers = HTTPHeaders(response.headers.map { ($0.key, $0.value) })
                headers.add(name: "Content-Length", value: "\(response.body.utf8.count)")
                let head = HTTPResponseHead(
                    version: .http1_1, status: HTTPResponseStatus(statusCode: response.status), headers: headers)
                context.write(wrapOutboundOut(.head(head)), promise: nil)
                let body = context.channel.allocator.buffer(string: response.body)
                context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
                context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
            }
        }
    }

    private let group: MultiThreadedEventLoopGroup
    private let listener: any Channel
    private let exchanges: Exchanges

    /// - Parameter responses: one for each request, and the last one for all others. None: requests get no answer.
    init(_ responses: [Response]) throws {
        let exchanges = Exchanges(responses)
        self.exchanges = exchanges
        group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        listener = try ServerBootstrap(group: group)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.pipeline.configureHTTPServerPipeline().flatMapThrowing {
                    try channel.pipeline.syncOperations.addHandler(Handler(exchanges))
                }
            }
            .bind(host: "127.0.0.1", port: 0).wait()
    }

    deinit {
        try? listener.close().wait()
        try? group.syncShutdownGracefully()
    }

    var requests: [Request] { exchanges.requests.withLock { $0 } }

    /// Pushes to this server, and often.
    var configuration: TelemetryConfiguration {
        var configuration = TelemetryConfiguration()
        configuration.metricsURL = "http://127.0.0.1:\(listener.localAddress?.port ?? 0)/v1/metrics"
        configuration.interval = .milliseconds(20)
        return configuration
    }
}
