import Dispatch
import Foundation
import MartletAgent
import MartletHTTP
import MartletKafka
import MartletTestSupport
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5))) struct HTTPServerTests {
    private static let token: Secret = "0123456789abcdef0123456789abcdef"
    private static let loopback = ListenAddress("127.0.0.1:0")

    private func start(
        token: Secret? = nil, limits: HTTPLimits = .init(),
        answer: @escaping @Sendable (HTTPRequest) -> HTTPResponse = { .text(200, "to \($0.method) \($0.target)") }
    ) throws -> HTTPServer {
        let address = try #require(Self.loopback)
        let rules = RequestGuard(address, token: token, openPaths: ["/open"], limits: limits)
        return try HTTPServer(address, rules: rules, limits: limits) { .now(answer($0)) }
    }

    @Test func aConnectionServesSeveralRequests() throws {
        let server = try start()
        defer { server.stop() }
        let client = try SocketClient(server.address)
        for number in 1...3 {
            client.send("GET /\(number)?a=b HTTP/1.1\r\nHost: localhost\r\n\r\n")
            let answer = try client.receiveAnswer()
            #expect(answer.status == 200)
            #expect(answer.body == "to GET /\(number)?a=b\n")
            #expect(answer.headers["connection"] == nil)
        }
        // Requests that are sent together are answered in order.
        client.send(
            "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\nGET /b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        let both = try client.receiveAll()
        let first = try #require(both.range(of: "to GET /a"))
        let second = try #require(both.range(of: "to GET /b"))
        #expect(first.upperBound < second.lowerBound)
    }

    @Test func answersHaveSecurityHeaders() throws {
        let server = try start()
        defer { server.stop() }
        let headers = try SocketClient.get(server.address, "/").headers
        #expect(headers["x-content-type-options"] == "nosniff")
        #expect(headers["cache-control"] == "no-store")
        #expect(headers["x-frame-options"] == "DENY")
        #expect(headers["referrer-policy"] == "no-referrer")
        #expect(headers["cross-origin-resource-policy"] == "same-origin")
        #expect(headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'")
        #expect(headers["server"] == nil && headers["access-control-allow-origin"] == nil)
    }

    @Test func aHeadRequestReturnsOnlyHeaders() throws {
        let server = try start()
        defer { server.stop() }
        let client = try SocketClient(server.address)
        client.send("HEAD /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        let answer = try client.receiveAll()
        #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(answer.contains("Content-Length: 11\r\n"))
        #expect(answer.hasSuffix("\r\n\r\n"))
    }

    @Test(arguments: [
        ("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi", 405),
        ("DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi", 413),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", 413),
        ("GET /\(String(repeating: "x", count: 1024)) HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
        ("GET /\(String(repeating: "x", count: 9000)) HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nA: \(String(repeating: "x", count: 9000))\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: localhost\r\n\(String(repeating: "A: b\r\n", count: 100))\r\n", 400),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421),
        ("GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        ("GET\r\n\r\n", 400),
        ("\u{0}\u{1}\u{2} / HTTP/1.1\r\n\r\n", 400),
    ])
    func aRefusedRequestEndsTheConnection(_ request: String, _ status: Int) throws {
        let server = try start { _ in
            Issue.record("It was answered")
            return .text(200, "")
        }
        defer { server.stop() }
        let client = try SocketClient(server.address)
        client.send(request)
        let answer = try #require(SocketClient.parse(try client.receiveAll()))
        #expect(answer.status == status)
        #expect(answer.headers["connection"] == "close")
    }

    @Test func withoutTheTokenOnlyOpenPathsAreAnswered() throws {
        let server = try start(token: Self.token)
        defer { server.stop() }
        #expect(try SocketClient.get(server.address, "/open").status == 200)
        let refused = try SocketClient.get(server.address, "/status")
        #expect(refused.status == 401)
        #expect(refused.headers["www-authenticate"] == "Bearer realm=\"martlet\"")
        #expect(!refused.body.contains(Self.token.value))
        #expect(try SocketClient.get(server.address, "/status", token: "wrong").status == 401)
        #expect(try SocketClient.get(server.address, "/status", token: Self.token.value + "0").status == 401)
        #expect(try SocketClient.get(server.address, "/status", token: Self.token.value).status == 200)
    }

    @Test func theServerClosesTheConnectionOfASlowClient() throws {
        var limits = HTTPLimits()
        // Long enough for the whole request at the end of this test on a busy machine.
        limits.requestTimeout = .seconds(2)
        let server = try start(limits: limits)
        defer { server.stop() }
        let silent = try SocketClient(server.address)
        #expect(try silent.receiveAll() == "")
        let dripping = try SocketClient(server.address)
        dripping.send("GET / HTTP/1.1\r\n")
        // Each byte arrives in time, but never the whole request, until the server closes the connection.
        var count = 0
        while !dripping.isClosed(within: 20), dripping.send("A") { count += 1 }
        // Far fewer bytes than the limit of a header.
        #expect(count < 1000)
        let kept = try SocketClient(server.address)
        kept.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(try kept.receiveAll().hasPrefix("HTTP/1.1 200"))
    }

    /// To measure a large history takes longer than an orchestrator waits for a probe.
    @Test func aProbeDoesNotWaitForAnAnswerThatTakesLong() throws {
        let address = try #require(Self.loopback)
        let gate = DispatchSemaphore(value: 0)
        let isAsked = DispatchSemaphore(value: 0)
        let server = try HTTPServer(
            address, rules: RequestGuard(address, token: nil, openPaths: []), isQuick: { $0.path == "/healthz" }
        ) { request in
            guard request.path == "/healthz" else {
                isAsked.signal()
                gate.wait()
                return .now(.text(200, "late"))
            }
            return .now(.text(200, "ok"))
        }
        defer { server.stop() }
        let slow = try SocketClient(server.address)
        slow.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        isAsked.wait()
        let probe = Result { try SocketClient.get(server.address, "/healthz").body }
        gate.signal()
        #expect(try probe.get() == "ok\n")
        #expect(try slow.receiveAnswer().body == "late\n")
    }

    /// To retry a large quarantine takes longer than Prometheus waits.
    @Test func aRequestThatReadsDoesNotWaitForOneThatChangesSomething() throws {
        let address = try #require(Self.loopback)
        let gate = DispatchSemaphore(value: 0)
        let isAsked = DispatchSemaphore(value: 0)
        let rules = RequestGuard(address, token: Self.token, openPaths: [], isChange: { _ in true })
        let server = try HTTPServer(address, rules: rules) { request in
            guard request.method == "POST" else { return .now(.text(200, "ok")) }
            isAsked.signal()
            gate.wait()
            return .now(.text(200, "late"))
        }
        defer { server.stop() }
        let change = try SocketClient(server.address)
        change.send(
            "POST /quarantine/retry HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(Self.token.value)\r\n"
                + "Connection: close\r\n\r\n")
        isAsked.wait()
        let metrics = Result { try SocketClient.get(server.address, "/metrics", token: Self.token.value).body }
        gate.signal()
        #expect(try metrics.get() == "ok\n")
        #expect(try change.receiveAnswer().body == "late\n")
    }

    @Test func theServerClosesTheConnectionIfTheAnswerTakesTooLong() throws {
        var limits = HTTPLimits()
        limits.responseTimeout = .milliseconds(200)
        let gate = DispatchSemaphore(value: 0)
        let server = try start(limits: limits) { _ in
            gate.wait()
            return .text(200, "late")
        }
        let client = try SocketClient(server.address)
        client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(try client.receiveAll() == "")
        gate.signal()
        server.stop()
    }

    @Test func theServerClosesConnectionsBeyondTheLimitUntilOneEnds() throws {
        var limits = HTTPLimits()
        limits.maxConnections = 2
        let server = try start(limits: limits)
        defer { server.stop() }
        let request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
        var first: SocketClient? = try SocketClient(server.address)
        let second = try SocketClient(server.address)
        for client in [first, second] {
            client?.send(request)
            #expect(try client?.receiveAnswer().status == 200)
        }
        #expect(try SocketClient(server.address).receiveAll() == "")
        first = nil
        let deadline = ContinuousClock.now + .seconds(20)
        while true {
            let third = try SocketClient(server.address)
            third.send(request)
            if (try? third.receiveAnswer())?.status == 200 { break }
            guard ContinuousClock.now < deadline else { throw TestFailure("There was never room again") }
        }
        second.send(request)
        #expect(try second.receiveAnswer().status == 200)
    }

    @Test func stopAnswersPendingRequests() async throws {
        let isAsked = DispatchSemaphore(value: 0)
        let gate = DispatchSemaphore(value: 0)
        let server = try start { _ in
            isAsked.signal()
            gate.wait()
            return .text(200, "the last")
        }
        let asking = try SocketClient(server.address)
        let idle = try SocketClient(server.address)
        asking.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                isAsked.wait()
                DispatchQueue.global().async {
                    server.stop(grace: .seconds(20))
                    continuation.resume()
                }
                // The idle connection is closed when the shutdown has begun, and before it is complete.
                _ = try? idle.receiveAll()
                gate.signal()
            }
        }
        #expect(try asking.receiveAll().hasSuffix("the last\n"))
        #expect(throws: TestFailure.self) { try SocketClient(server.address) }
    }

    @Test func theServerSurvivesAClientThatLeavesBeforeItsAnswer() throws {
        let gate = DispatchSemaphore(value: 0)
        let isAsked = DispatchSemaphore(value: 0)
        let server = try start { request in
            if request.path == "/slow" {
                isAsked.signal()
                gate.wait()
            }
            return .text(200, String(repeating: "x", count: 1 << 20))
        }
        defer { server.stop() }
        do {
            let client = try SocketClient(server.address)
            client.send("GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
            isAsked.wait()
        }
        gate.signal()
        #expect(try SocketClient.get(server.address, "/").status == 200)
    }

    /// The answers would take all memory, and the page needs no token.
    @Test func aClientThatReceivesNothingGetsNoFurtherAnswers() async throws {
        var limits = HTTPLimits()
        limits.maxConnections = 1
        limits.responseTimeout = .milliseconds(200)
        let answered = Mutex(0)
        let page = String(repeating: "x", count: 1 << 20)
        let server = try start(limits: limits) { request in
            guard request.path == "/large" else { return .text(200, "small") }
            answered.withLock { $0 += 1 }
            return .text(200, page)
        }
        defer { server.stop() }
        // Far more than the sockets hold.
        let count = 100
        let client = try SocketClient(server.address)
        client.send(String(repeating: "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n", count: count))
        try await eventually("there is room for another connection") {
            (try? SocketClient.get(server.address, "/small"))?.status == 200
        }
        #expect(answered.withLock { $0 } < count)
        withExtendedLifetime(client) {}
    }

    @Test func anAddressInUseIsReported() throws {
        let server = try start()
        defer { server.stop() }
        let error = #expect(throws: HTTPServerError.self) {
            try HTTPServer(server.address, rules: RequestGuard(server.address, token: nil, openPaths: [])) { _ in
                .now(.text(200, ""))
            }
        }
        #expect(
            error?.description.contains("can't listen on \(server.address): another program listens there") == true
        )
    }
}
