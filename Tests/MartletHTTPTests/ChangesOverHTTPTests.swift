import Foundation
import Logging
import MartletAgent
import MartletHTTP
import MartletKafka
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Changes over HTTP to a store that has recorded a conflict.
@Suite(.timeLimit(.minutes(5))) struct ChangesOverHTTPTests {
    private static let token = "0123456789abcdef"
    private let directory: TemporaryDirectory
    private let node: TestNode

    init() throws {
        directory = try TemporaryDirectory()
        let bus = InMemoryBus(topic: "t", partitionCount: 1)
        let schema = "CREATE TABLE note(key TEXT PRIMARY KEY, text TEXT)"
        node = try TestNode("a", bus: bus, directory: directory, schema: schema)
        let other = try TestNode("b", bus: bus, directory: directory, schema: schema)
        try node.write("INSERT INTO note VALUES ('k', 'first')")
        try exchange([node, other])
        try node.write("UPDATE note SET text = 'of a'")
        try other.write("UPDATE note SET text = 'of b'")
        try exchange([node, other])
    }

    private func endpoints(token: String? = token, showsValues: Bool = true) throws -> AgentEndpoints {
        let rules = RequestGuard(
            try #require(ListenAddress("127.0.0.1:1")), token: token.map { Secret($0) }, openPaths: [],
            isChange: AgentEndpoints.isChange)
        var configuration = AgentConfiguration()
        configuration.http.showsValues = showsValues
        let store = node.store
        let engine = node.engine
        return AgentEndpoints(
            storePath: node.path, registry: MetricsRegistry(),
            log: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            rules: rules,
            actions: AgentActions(
                reapply: { try store.reapplyConflict($0, author: AgentHTTP.author) },
                retryQuarantined: { try engine.retryQuarantined() }),
            configuration: { [configuration] in configuration },
            facts: {
                AgentFacts(
                    now: .now, milliseconds: 0, consumer: ConsumerProgress(startedAt: .now),
                    publisher: PublisherProgress(acknowledged: 0, advancedAt: .now))
            })
    }

    private func request(_ method: String, _ path: String, token: String? = token) -> HTTPRequest {
        HTTPRequest(method, path, token.map { [("Authorization", "Bearer \($0)")] } ?? [])
    }

    private func json(_ response: HTTPResponse) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(response.body.utf8)) as? [String: Any])
    }

    private func conflict(_ endpoints: AgentEndpoints, token: String? = token) throws -> [String: Any] {
        let activity = try json(endpoints.respond(request("GET", "/activity", token: token)))
        let conflicts = try #require(activity["conflicts"] as? [[String: Any]])
        #expect(conflicts.count == 1)
        return try #require(conflicts.first)
    }

    @Test func reapplyingAConflictRestoresTheOverruledValue() throws {
        let endpoints = try endpoints()
        let before = try conflict(endpoints)
        #expect(before["overruled"] as? String == "of a" && before["current"] as? String == "of b")
        #expect(before["row"] as? [String] == ["k"] && before["reapplied"] as? Bool == false)
        let id = try #require(before["id"] as? Int)
        let answer = endpoints.respond(request("POST", "/conflicts/\(id)/reapply"))
        #expect(answer.status == 200)
        #expect(try json(answer)["reapplied"] as? Int == id)
        #expect(try node.rows("SELECT text FROM note") == ["of a"])
        let made = try node.store.fetchHistory(HistoryQuery(author: .equal(AgentHTTP.author)))
        #expect(made.count == 1)
        // The endpoints read the store at most once a second, so that fresh ones are needed.
        let fresh = try conflict(self.endpoints())
        #expect(fresh["current"] as? String == "of a" && fresh["reapplied"] as? Bool == true)
    }

    @Test func valuesNeedATokenAndAConfigurationThatShowsThem() throws {
        for hidden in [try endpoints(token: nil), try endpoints(showsValues: false)] {
            let conflict = try conflict(hidden)
            #expect(["overruled", "current", "row"].allSatisfy { conflict[$0] == nil })
            #expect(!hidden.respond(request("GET", "/activity")).body.contains("of a"))
        }
        #expect(try conflict(endpoints(), token: nil)["overruled"] == nil)
    }

    @Test func aConflictThatCannotBeReappliedGivesAReason() throws {
        let endpoints = try endpoints()
        let unknown = endpoints.respond(request("POST", "/conflicts/99/reapply"))
        #expect(unknown.status == 400 && unknown.body.contains("There is no conflict 99"))
        try node.write("DELETE FROM note")
        let id = try #require(try conflict(endpoints)["id"] as? Int)
        let gone = endpoints.respond(request("POST", "/conflicts/\(id)/reapply"))
        #expect(gone.status == 400 && gone.body.contains("is not in the table"))
        #expect(try conflict(self.endpoints())["current"] is NSNull)
    }

    @Test(arguments: [
        "/", "/status", "/conflicts", "/conflicts/1", "/conflicts//reapply", "/conflicts/0/reapply",
        "/conflicts/-1/reapply",
        "/conflicts/1/reapply/", "/conflicts/1;DROP TABLE note/reapply", "/conflicts/99999999999999999999/reapply",
        "//conflicts/1/reapply", "/quarantine", "/quarantine/retry/x",
    ]) func otherPathsAreNoChanges(path: String) {
        #expect(!AgentEndpoints.isChange(path[...]))
    }

    @Test func aRequestRetriesQuarantinedMessages() throws {
        let report = try json(endpoints().respond(request("POST", "/quarantine/retry")))
        #expect(report["kept"] as? Int == 0 && report["applied"] as? Int == 0)
        try node.quarantineNonsense()
        #expect(try json(endpoints().respond(request("POST", "/quarantine/retry")))["kept"] as? Int == 1)
    }

    @Test func aRequestComputesTheDigest() async throws {
        let endpoints = try endpoints()
        var known: [String: Any] = [:]
        try await eventually("a digest") {
            known = try json(endpoints.respond(request("GET", "/digest")))
            return known["running"] as? Bool == false
        }
        #expect(known["digest"] as? String == (try StoreDigest.compute(node.store).digest))
    }
}
