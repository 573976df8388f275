import Foundation
import MartletAgent
import MartletHTTP
import MartletTestSupport
import Synchronization
import Testing

/// How the server writes responses that go on.
@Suite(.timeLimit(.minutes(5))) struct HTTPStreamTests {
    /// Returns what a test gives it.
    private final class TestStream: HTTPStream {
        private struct State {
            var parts: [HTTPStreamPart]
            var count = 0
            var wake: (@Sendable () -> Void)?
        }

        private let state: Mutex<State>
        private let released: @Sendable () -> Void

        /// - Parameter released: called when nobody has the stream any more.
        init(_ parts: [HTTPStreamPart], released: @escaping @Sendable () -> Void = {}) {
            state = Mutex(State(parts: parts))
            self.released = released
        }

        deinit { released() }

        /// How often the server has asked.
        var count: Int { state.withLock { $0.count } }
        var isAwaited: Bool { state.withLock { $0.wake != nil } }

        func next() -> HTTPStreamPart {
            state.withLock { state in
                state.count += 1
                return state.parts.isEmpty ? .nothing : state.parts.removeFirst()
            }
        }

        func whenChanged(_ wake: @escaping @Sendable () -> Void) { state.withLock { $0.wake = wake } }

        func add(_ part: HTTPStreamPart) {
            let wake = state.withLock { state in
                state.parts.append(part)
                defer { state.wake = nil }
                return state.wake
            }
            wake?()
        }
    }

    /// - Parameter stream: makes the stream of a request; the server alone has it, unless the test keeps it.
    private func start(
        _ stream: @autoclosure @escaping @Sendable () -> TestStream, limits: HTTPLimits = .init()
    ) throws -> HTTPServer {
        let address = try #require(ListenAddress("127.0.0.1:0"))
        return try HTTPServer(
            address, rules: RequestGuard(address, token: nil, openPaths: [], limits: limits), limits: limits
        ) { request in
            request.path == "/stream"
                ? .stream(HTTPResponse(200, "text/plain", ""), stream()) : .now(.text(200, "other"))
        }
    }

    private func open(_ server: HTTPServer) throws -> SocketClient {
        let client = try SocketClient(server.address)
        client.send("GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return client
    }

    @Test func partsArriveAsTheyAreMade() async throws {
        let stream = TestStream([.some("one,")])
        let server = try start(stream)
        defer { server.stop() }
        let client = try open(server)
        let head = try client.receive(until: "one,").lowercased()
        #expect(head.hasPrefix("http/1.1 200 ok\r\n") && head.contains("transfer-encoding: chunked\r\n"))
        #expect(!head.contains("content-length") && head.contains("x-content-type-options: nosniff"))
        try await eventually("the server waits") { stream.isAwaited }
        stream.add(.some("two,"))
        _ = try client.receive(until: "two,")
        stream.add(.last("three."))
        #expect(try client.receiveAll().hasSuffix("three.\r\n0\r\n\r\n"))
    }

    /// Otherwise all that a slow client has not received would be in memory.
    @Test func theNextPartIsMadeWhenTheLastOneHasArrived() async throws {
        // More than the system's buffers of a connection.
        let large = String(repeating: "x", count: 32 << 20)
        let stream = TestStream([.some(large), .some("second")])
        let server = try start(stream)
        defer { server.stop() }
        let client = try open(server)
        try await eventually("the first part is made") { stream.count == 1 }
        // The same thread makes the answers, so the second part was not asked for by now.
        #expect(try SocketClient.get(server.address, "/").body == "other\n")
        #expect(stream.count == 1)
        _ = try client.receive(until: "second")
        try await eventually("more is asked for") { stream.count == 3 }
    }

    @Test func aClientThatTakesNothingIsDisconnected() async throws {
        var limits = HTTPLimits()
        limits.streamWriteTimeout = .milliseconds(50)
        // More than the system's buffers of a connection.
        let large = String(repeating: "x", count: 32 << 20)
        let isReleased = Atomic(false)
        let server = try start(
            TestStream([.some(large), .some("second")]) { isReleased.store(true, ordering: .releasing) },
            limits: limits)
        defer { server.stop() }
        let client = try open(server)
        try await eventually("the server gives up") { isReleased.load(ordering: .acquiring) }
        // What was in the buffers.
        let received = try client.receiveAll()
        #expect(!received.isEmpty && received.utf8.count < large.utf8.count)
    }

    /// A transaction is one part, whatever its size.
    @Test func aLargePartMayTakeLonger() {
        let limits = HTTPLimits()
        #expect(limits.streamWriteTimeout(bytes: 256 << 10) == .seconds(60))
        #expect(limits.streamWriteTimeout(bytes: 40 << 20) == .seconds(660))
    }

    @Test func aSilentStreamGivesSignsOfLife() throws {
        var limits = HTTPLimits()
        limits.heartbeatInterval = .milliseconds(5)
        let stream = TestStream([])
        let server = try start(stream, limits: limits)
        defer { server.stop() }
        let client = try open(server)
        for _ in 1...3 { _ = try client.receive(until: ":\n\n") }
        stream.add(.some("data"))
        _ = try client.receive(until: "data")
    }

    /// The server would otherwise wait for the end of its grace period.
    @Test func aServerThatStopsEndsItsStreams() async throws {
        let (idle, busy) = (TestStream([.some("one")]), TestStream([.some(String(repeating: "x", count: 32 << 20))]))
        let address = try #require(ListenAddress("127.0.0.1:0"))
        let server = try HTTPServer(address, rules: RequestGuard(address, token: nil, openPaths: [])) { request in
            .stream(HTTPResponse(200, "text/plain", ""), request.path == "/busy" ? busy : idle)
        }
        let client = try open(server)
        _ = try client.receive(until: "one")
        try await eventually("the stream is idle") { idle.isAwaited }
        let slow = try SocketClient(server.address)
        slow.send("GET /busy HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try await eventually("the part is made") { busy.count == 1 }
        server.stop(grace: .seconds(90))
        #expect(try client.receiveAll().hasSuffix("0\r\n\r\n"))
    }

    @Test func aStreamIsReleasedWhenItsClientGoes() async throws {
        let address = try #require(ListenAddress("127.0.0.1:0"))
        let streams = Mutex<[Weak]>([])
        let server = try HTTPServer(address, rules: RequestGuard(address, token: nil, openPaths: [])) { _ in
            let stream = TestStream([.some("one")])
            streams.withLock { $0.append(Weak(stream: stream)) }
            return .stream(HTTPResponse(200, "text/plain", ""), stream)
        }
        defer { server.stop() }
        do {
            let client = try open(server)
            _ = try client.receive(until: "one")
            // The stream has the closure that wakes the server, and nothing changes from here on.
            try await eventually("the server waits") { streams.withLock { $0.first?.stream?.isAwaited ?? false } }
            withExtendedLifetime(client) {}
        }
        try await eventually("the stream is released") {
            streams.withLock { $0.count == 1 && $0[0].stream == nil }
        }
    }

    private struct Weak { weak var stream: TestStream? }
}
