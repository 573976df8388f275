import Foundation
import GRDB
import Logging
import MartletAgent
import MartletHTTP
import MartletKafka
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Waiting over HTTP until a transaction is published or applied on other nodes.
@Suite(.timeLimit(.minutes(5))) struct WaitOverHTTPTests {
    private let directory: TemporaryDirectory
    private let node: TestNode

    init() throws {
        directory = try TemporaryDirectory()
        node = try TestNode(
            "a", bus: InMemoryBus(topic: "t", partitionCount: 1), directory: directory,
            schema: "CREATE TABLE note(key TEXT PRIMARY KEY, text TEXT)")
    }

    private func endpoints() throws -> AgentEndpoints {
        let address = try #require(ListenAddress("127.0.0.1:1"))
        return AgentEndpoints(
            storePath: node.path, registry: MetricsRegistry(),
            log: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            rules: RequestGuard(address, token: nil, openPaths: []), actions: .none,
            configuration: { AgentConfiguration() },
            facts: {
                AgentFacts(
                    now: .now, milliseconds: 0, consumer: ConsumerProgress(startedAt: .now),
                    publisher: PublisherProgress(acknowledged: 0, advancedAt: .now))
            })
    }

    /// The function that the server calls until it returns an answer.
    private func begin(_ query: String) throws -> @Sendable () -> HTTPResponse? {
        switch try endpoints().answer(HTTPRequest("GET", "/wait?\(query)")) {
        case .now(let response): return { response }
        case .later(let look): return look
        case .stream: throw TestFailure("not an answer: a stream")
        }
    }

    private func json(_ response: HTTPResponse?) throws -> [String: Any] {
        let body = try #require(response).body
        return try #require(try JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any])
    }

    @Test func theAnswerArrivesOncePublished() throws {
        try node.write("INSERT INTO note VALUES ('k', 'first')")
        let look = try begin("published")
        #expect(look() == nil)
        try node.publish()
        let answer = look()
        #expect(answer?.status == 200)
        #expect(try json(answer)["done"] as? Bool == true)
    }

    @Test func aTokenIdentifiesTheTransaction() throws {
        let token = try #require(
            try node.store.writeTransaction { try $0.execute(sql: "INSERT INTO note VALUES ('k', 'first')") }.token)
        try node.publish()
        try node.write("INSERT INTO note VALUES ('l', 'second')")
        #expect(try begin("published&through=\(token)")()?.status == 200)
        #expect(try begin("published")() == nil)
        let foreign = HistoryToken(store: UUID(), transaction: 1)
        #expect(try begin("published&through=\(foreign)")()?.status == 400)
    }

    @Test func aTimeoutReportsMissingNodes() throws {
        try node.write("INSERT INTO note VALUES ('k', 'first')")
        let unpublished = try begin("on=b&timeout=0s")()
        #expect(unpublished?.status == 504)
        #expect(try json(unpublished)["published"] as? Bool == false)
        #expect(try json(unpublished)["unpublished"] as? Int == 1)
        try node.publish()
        let wanted = try Delivery.answerWanted(node.engine.session)
        let missing = try begin("on=b&on=c%20d&timeout=0s")()
        #expect(missing?.status == 504)
        let nodes = try #require(try json(missing)["missing"] as? [[String: Any]])
        #expect(nodes.map { $0["node"] as? String } == ["b", "c d"])
        #expect(nodes.allSatisfy { $0["known"] as? Bool == false })
        #expect(try Delivery.answerWanted(node.engine.session) > wanted)
        let own = try begin("on=a")()
        #expect(own?.status == 400 && own?.body.contains("a is this node") == true)
    }

    /// A long write of another program delays nobody who only reads, and a question to other nodes is asked after it.
    @Test func aLockedStoreIsWaitedFor() throws {
        try node.write("INSERT INTO note VALUES ('k', 'first')")
        try node.publish()
        let other = try DatabaseQueue.ofAnotherProgram(node.path)
        defer { try? other.close() }
        try other.inDatabase { try $0.execute(sql: "BEGIN IMMEDIATE") }
        #expect(try begin("published")()?.status == 200)
        let wanted = try Delivery.answerWanted(node.engine.session)
        let look = try begin("on=b")
        #expect(look() == nil)
        let locked = try begin("on=b&timeout=0s")()
        #expect(locked?.status == 504)
        #expect(try json(locked)["done"] as? Bool == false)
        #expect(try json(locked)["locked"] is String)
        #expect(try Delivery.answerWanted(node.engine.session) == wanted)
        try other.inDatabase { try $0.execute(sql: "COMMIT") }
        #expect(look() == nil)
        #expect(try Delivery.answerWanted(node.engine.session) > wanted)
    }

    @Test(arguments: [
        "", "published&on=b", "on-all&published", "on=", "on", "published=yes", "published&timeout=soon",
        "published&timeout=6m", "published&timeout=-1s", "published&through=5", "published&nonsense=1",
    ]) func anInvalidQueryIsRefused(query: String) throws {
        let response = try begin(query)()
        #expect(response?.status == 400)
        #expect(response?.body.contains("/wait?") == true)
    }

    /// An app may wait once for each of its requests. The probes have to get through all the same.
    @Test func connectionsAreLeftForProbesHoweverManyRequestsWait() async throws {
        let address = try #require(ListenAddress("127.0.0.1:0"))
        // On a busy machine, neither may end before all requests have arrived.
        var limits = HTTPLimits()
        limits.requestTimeout = .seconds(600)
        let server = try HTTPServer(
            address, rules: RequestGuard(address, token: nil, openPaths: []), limits: limits,
            answer: endpoints().answer)
        defer { server.stop() }
        try node.write("INSERT INTO note VALUES ('k', 'first')")
        let clients = try (0..<limits.maxConnections - 2).map { _ in
            let client = try SocketClient(server.address)
            client.send("GET /wait?published&timeout=5m HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return client
        }
        let most = WaitKeeper.most
        try await eventually("refusals") { clients.count { $0.isClosed(within: 0) } == clients.count - most }
        let refused = clients.filter { $0.isClosed(within: 0) }
        for client in refused {
            let answer = try client.receiveAnswer()
            #expect(answer.status == 503 && answer.headers["retry-after"] == "1")
        }
        #expect(try SocketClient.get(server.address, "/healthz").body == "ok\n")
        try node.publish()
        for client in clients where !refused.contains(where: { $0 === client }) {
            #expect(try client.receiveAnswer().status == 200)
        }
    }

    @Test func theEndOfAWaitMakesRoomForAnother() throws {
        try node.write("INSERT INTO note VALUES ('k', 'first')")
        let endpoints = try endpoints()
        func begin(_ query: String = "published") -> HTTPAnswer {
            endpoints.answer(HTTPRequest("GET", "/wait?\(query)"))
        }
        func isRefused(_ answer: HTTPAnswer) -> Bool {
            if case .now(let response) = answer { response.status == 503 } else { false }
        }
        var waits = (0..<WaitKeeper.most).map { _ in begin() }
        #expect(!waits.contains(where: isRefused))
        #expect(isRefused(begin()))
        waits.removeLast()
        // An invalid request takes no place.
        _ = begin("on=a")
        #expect(!isRefused(begin()))
    }

    /// The server would otherwise wait for the end of its grace period, and then close the connection without a word.
    @Test func aServerThatStopsRefusesTheRequestsThatWait() throws {
        let address = try #require(ListenAddress("127.0.0.1:0"))
        let server = try HTTPServer(
            address, rules: RequestGuard(address, token: nil, openPaths: []), answer: endpoints().answer)
        try node.write("INSERT INTO note VALUES ('k', 'first')")
        let waiting = try SocketClient(server.address)
        waiting.send("GET /wait?published&timeout=60s HTTP/1.1\r\nHost: localhost\r\n\r\n")
        // One thread answers all, so this answer means that the request before it waits.
        #expect(try SocketClient.get(server.address, "/status").status == 200)
        server.stop(grace: .seconds(60))
        #expect(try waiting.receiveAnswer().status == 503)
    }

    /// A waiting request blocks no other one, although one thread answers all.
    @Test func aWaitingRequestDoesNotBlockOthers() throws {
        let address = try #require(ListenAddress("127.0.0.1:0"))
        let server = try HTTPServer(
            address, rules: RequestGuard(address, token: nil, openPaths: []), answer: endpoints().answer)
        defer { server.stop() }
        try node.write("INSERT INTO note VALUES ('k', 'first')")
        let waiting = try SocketClient(server.address)
        waiting.send("GET /wait?published&timeout=60s HTTP/1.1\r\nHost: localhost\r\n\r\n")
        // A client that disconnects while it waits.
        do {
            let gone = try SocketClient(server.address)
            gone.send("GET /wait?published&timeout=60s HTTP/1.1\r\nHost: localhost\r\n\r\n")
        }
        #expect(try SocketClient.get(server.address, "/healthz").body == "ok\n")
        try node.publish()
        let answer = try waiting.receiveAnswer()
        #expect(answer.status == 200 && answer.body.contains("true"))
        // The connection serves further requests.
        waiting.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(try waiting.receiveAnswer().body == "ok\n")
    }
}
