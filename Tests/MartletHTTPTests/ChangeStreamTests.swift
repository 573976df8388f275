import Foundation
import GRDB
import Logging
import MartletAgent
import MartletHTTP
import MartletKafka
import MartletStore
import MartletSync
import MartletTestSupport
import Synchronization
import Testing

/// The history as server-sent events.
@Suite(.timeLimit(.minutes(5))) struct ChangeStreamTests {
    private static let token: Secret = "0123456789abcdef0123456789abcdef"
    private let directory: TemporaryDirectory
    private let node: TestNode

    init() throws {
        directory = try TemporaryDirectory()
        node = try TestNode(
            "a", bus: InMemoryBus(topic: "t", partitionCount: 1), directory: directory,
            schema: "CREATE TABLE note(key TEXT PRIMARY KEY, text TEXT); CREATE TABLE tag(key TEXT PRIMARY KEY)")
    }

    private func endpoints(showsValues: @escaping @Sendable () -> Bool = { true }) throws -> AgentEndpoints {
        AgentEndpoints(
            storePath: node.path, registry: MetricsRegistry(),
            log: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, rules: try rules(), actions: .none,
            configuration: {
                var configuration = AgentConfiguration()
                configuration.http.showsValues = showsValues()
                return configuration
            },
            facts: {
                AgentFacts(
                    now: .now, milliseconds: 0, consumer: ConsumerProgress(startedAt: .now),
                    publisher: PublisherProgress(acknowledged: 0, advancedAt: .now))
            })
    }

    private func rules() throws -> RequestGuard {
        RequestGuard(try #require(ListenAddress("127.0.0.1:0")), token: Self.token, openPaths: [])
    }

    private func start() throws -> HTTPServer {
        try HTTPServer(try #require(ListenAddress("127.0.0.1:0")), rules: try rules(), answer: endpoints().answer)
    }

    private func open(_ server: HTTPServer, _ query: String = "", lastEventID: String? = nil) throws -> SocketClient {
        let client = try SocketClient(server.address)
        let header = lastEventID.map { "Last-Event-ID: \($0)\r\n" } ?? ""
        client.send(
            """
            GET /changes\(query) HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(Self.token.value)\r\n\
            \(header)\r\n
            """)
        return client
    }

    private func request(_ query: String, _ headers: [(name: String, value: String)] = []) -> HTTPRequest {
        let authorization = (name: "Authorization", value: "Bearer \(Self.token.value)")
        return HTTPRequest("GET", "/changes\(query)", [authorization] + headers)
    }

    private func stream(
        _ query: String, _ headers: [(name: String, value: String)] = [], from endpoints: AgentEndpoints? = nil
    ) throws -> any HTTPStream {
        guard case .stream(_, let stream) = try (endpoints ?? self.endpoints()).answer(request(query, headers)) else {
            throw TestFailure("\(query) was refused")
        }
        return stream
    }

    private func refusal(_ query: String, _ headers: [(name: String, value: String)] = []) throws -> HTTPResponse {
        guard case .now(let response) = try endpoints().answer(request(query, headers)) else {
            throw TestFailure("\(query) was not refused")
        }
        return response
    }

    /// The keys of the notes and tags in all parts until there is nothing more.
    private func keys(_ stream: any HTTPStream) throws -> [String] {
        var keys: [String] = []
        while case .some(let text) = stream.next() {
            for line in text.split(separator: "\n") where line.hasPrefix("data: ") {
                let object = try JSONSerialization.jsonObject(with: Data(line.dropFirst(6).utf8)) as? [String: Any]
                for change in object?["changes"] as? [[String: Any]] ?? [] {
                    keys += [((change["values"] as? [String: Any])?["key"] as? String) ?? "?"]
                }
            }
        }
        return keys
    }

    private func write(_ key: String, to table: String = "note", author: String? = nil) throws -> HistoryToken {
        try #require(
            try node.store.writeTransaction(author: author) {
                try $0.execute(sql: "INSERT INTO \(table)(key) VALUES (?)", arguments: [key])
            }.token)
    }

    @Test func aStreamSendsWhatIsCommittedFromNowOn() throws {
        _ = try write("before")
        let server = try start()
        defer { server.stop() }
        let client = try open(server)
        let begin = try client.receive(until: "\n\n\r\n")
        #expect(begin.contains("Content-Type: text/event-stream\r\n") && begin.contains("retry: 1000\nid: "))
        let token = try write("after")
        let event = try client.receive(until: "\n\n")
        #expect(event.contains("id: \(token)\ndata: {") && event.contains("\"key\":\"after\""))
        #expect(!event.contains("before"))
    }

    /// As when a backup is restored by renaming it over the store.
    @Test func aStreamEndsWhenTheStoreIsReplaced() throws {
        let begin = try write("before")
        let stream = try stream("?after=\(begin)")
        _ = try keys(stream)
        try StoreReplacement.moveAway(node.path, replacing: true)
        guard case .last(let text) = stream.next() else { throw TestFailure("the stream continues") }
        #expect(text == ": The store was moved or replaced.\n\n")
    }

    @Test func theLastEventIDContinuesTheStream() throws {
        let tokens = try ["a", "b", "c"].map { try write($0) }
        #expect(try keys(stream("?after=\(tokens[0])")) == ["b", "c"])
        let headers = [(name: "Last-Event-ID", value: "\(tokens[1])")]
        #expect(try keys(stream("?after=\(tokens[0])", headers)) == ["c"])
        #expect(try keys(stream("?after=\(tokens[0])", [(name: "Last-Event-ID", value: "")])) == ["b", "c"])
        let server = try start()
        defer { server.stop() }
        let event = try open(server, lastEventID: "\(tokens[1])").receive(until: "data: {")
        #expect(event.contains("id: \(tokens[2])\ndata: {"))
    }

    @Test func aStreamMayBeLimitedToAuthorsAndTables() throws {
        let begin = try write("first")
        _ = try write("x", author: "me")
        _ = try write("y", to: "tag", author: "me")
        _ = try write("z")
        #expect(try keys(stream("?after=\(begin)&author=me")) == ["x", "y"])
        #expect(try keys(stream("?after=\(begin)&exclude-author=me")) == ["z"])
        #expect(try keys(stream("?after=\(begin)&no-author")) == ["z"])
        #expect(try keys(stream("?after=\(begin)&entity=tag")) == ["y"])
        #expect(try keys(stream("?after=\(begin)&entity=tag&entity=note")) == ["x", "y", "z"])
    }

    /// A client that reads one table would otherwise continue before all changes of other tables.
    @Test func theClientLearnsHowFarTheHistoryWasRead() throws {
        let begin = try write("first")
        let last = try write("x")
        let stream = try stream("?after=\(begin)&entity=tag")
        #expect(stream.next() == .some("retry: 1000\nid: \(begin)\n\nid: \(last)\n\n"))
        #expect(stream.next() == .nothing)
    }

    @Test func aCommitThatComesBeforeTheServerWaitsIsNoticed() async throws {
        let stream = try stream("")
        _ = stream.next()
        #expect(stream.next() == .nothing)
        let wakes = Mutex(0)
        stream.whenChanged { wakes.withLock { $0 += 1 } }
        _ = try write("x")
        try await eventually("the wake") { wakes.withLock { $0 } == 1 }
        // Nobody waits now.
        _ = try write("y")
        #expect(try keys(stream) == ["x", "y"])
        try await eventually("the wake for the second commit") {
            stream.whenChanged { wakes.withLock { $0 += 1 } }
            return wakes.withLock { $0 } >= 2
        }
    }

    @Test(arguments: [
        "?after=", "?after=5", "?after", "?author=", "?author=a&no-author", "?author=a&author=b", "?no-author=x",
        "?entity=", "?entity=nonsense", "?nonsense=1", "?after=%zz",
    ]) func anInvalidRequestIsRefused(query: String) throws {
        let response = try refusal(query)
        #expect(response.status == 400)
        #expect(response.body.contains("/changes?") || response.body.contains("Tracked tables"))
    }

    @Test func anInvalidLastEventIDIsRefused() throws {
        let token = try write("x")
        #expect(try refusal("?after=\(token)&after=\(token)").body.hasPrefix("after: was given more than once."))
        #expect(try refusal("?after=\(token)", [(name: "Last-Event-ID", value: "x")]).status == 400)
    }

    @Test func anExpiredTokenTellsTheClientToLoadTheRows() throws {
        let tokens = try ["a", "b", "c", "d"].map { try write($0) }
        try node.publish()
        let late = try stream("?after=\(tokens[2])")
        let slow = try stream("")
        _ = try node.store.deleteHistory(through: tokens[2])
        let foreign = HistoryToken(store: UUID(), transaction: 1)
        for token in [tokens[0], foreign] {
            let response = try refusal("?after=\(token)")
            #expect(response.status == 410 && response.contentType == "application/json")
            let document = try JSONSerialization.jsonObject(with: Data(response.body.utf8)) as? [String: Any]
            #expect(document?["token"] as? String == "\(tokens[3])" && document?["event"] as? String == "reload")
        }
        #expect(try keys(late) == ["d"])
        // History is deleted before a slow client has read it.
        _ = try keys(slow)
        let more = try ["e", "f"].map { try write($0) }
        try node.publish()
        _ = try node.store.deleteHistory(through: more[0])
        guard case .last(let text) = slow.next() else { throw TestFailure("the stream goes on") }
        #expect(text.hasPrefix("event: reload\ndata: {") && text.hasSuffix("\n\n"))
        #expect(text.contains("\"token\":\"\(more[1])\""))
    }

    @Test func valuesNeedAToken() throws {
        let server = try start()
        defer { server.stop() }
        #expect(try SocketClient.get(server.address, "/changes").status == 401)
        let address = try #require(ListenAddress("127.0.0.1:0"))
        let open = AgentEndpoints(
            storePath: node.path, registry: MetricsRegistry(),
            log: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            rules: RequestGuard(address, token: nil, openPaths: []), actions: .none,
            configuration: { AgentConfiguration() },
            facts: {
                AgentFacts(
                    now: .now, milliseconds: 0, consumer: ConsumerProgress(startedAt: .now),
                    publisher: PublisherProgress(acknowledged: 0, advancedAt: .now))
            })
        for endpoints in [open, try endpoints(showsValues: { false })] {
            guard case .now(let response) = endpoints.answer(request("")) else { throw TestFailure("not refused") }
            #expect(response.status == 403 && response.body.contains("http."))
        }
    }

    /// The configuration may be reloaded while a client follows the changes.
    @Test func aStreamEndsWhenValuesAreNotShownAnyMore() throws {
        let isShown = Atomic(true)
        let stream = try stream("", from: endpoints(showsValues: { isShown.load(ordering: .relaxed) }))
        _ = stream.next()
        _ = try write("secret")
        isShown.store(false, ordering: .relaxed)
        #expect(stream.next() == .last(": Values are not shown any more.\n\n"))
    }

    @Test func thereIsALimitToTheNumberOfStreams() throws {
        let endpoints = try endpoints()
        var streams = try (0..<ChangeStreams.most).map { _ in try stream("", from: endpoints) }
        guard case .now(let response) = endpoints.answer(request("")) else { throw TestFailure("not refused") }
        #expect(response.status == 503 && response.headers["Retry-After"] != nil)
        // An invalid request takes no place, and a stream that ends makes room.
        _ = endpoints.answer(request("?after=5"))
        streams.removeLast()
        _ = try stream("", from: endpoints)
    }

    /// Streams and waits keep connections; some have to be left for probes.
    @Test func streamsAndWaitsShareTheirPlaces() throws {
        let endpoints = try endpoints()
        try node.write("INSERT INTO note VALUES ('k', 'first')")
        let streams = try (0..<ChangeStreams.most).map { _ in try stream("", from: endpoints) }
        let waits = (0..<WaitKeeper.most).map { _ in endpoints.answer(HTTPRequest("GET", "/wait?published")) }
        let refused = waits.count { if case .now(let response) = $0 { response.status == 503 } else { false } }
        #expect(refused == streams.count)
    }

    /// The history is measured on a thread of its own, so the first answers don't have it.
    @Test func theStatusWarnsOfACursorThatMakesTheStoreGrow() async throws {
        let endpoints = try endpoints()
        func status() throws -> [String: Any] {
            let response = endpoints.respond(HTTPRequest("GET", "/status"))
            return try #require(try JSONSerialization.jsonObject(with: Data(response.body.utf8)) as? [String: Any])
        }
        // The publisher is further than the cursor.
        _ = try write("first")
        try node.publish()
        try node.store.setCursor("old app", to: nil)
        try node.store.writeOwnTables { try HistoryBounds(sizeBytes: 1).record($0) }
        try node.store.write { db in
            for row in 1...70 { try db.execute(sql: "INSERT INTO note VALUES ('\(row)', zeroblob(1048576))") }
        }
        _ = try write("last")
        try await eventually("the measurement") { try status()["history"] is [String: Any] }
        let warnings = try #require(try status()["warnings"] as? [[String: Any]])
        #expect(warnings.map { $0["code"] as? String } == ["history"])
        let message = warnings.first?["message"] as? String ?? ""
        #expect(message.hasPrefix("The cursor old app (last moved 20") && message.contains("cursors remove"))
        #expect(try status()["ready"] as? Bool == false)
    }
}
