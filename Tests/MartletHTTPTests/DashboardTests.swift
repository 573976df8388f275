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

@Suite(.timeLimit(.minutes(5))) struct DashboardTests {
    /// A hostile name that another node, a table or an author may have.
    private static let hostile =
        "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>'&"

    private static let chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    @Test func thePageLoadsNothingFromOutside() {
        let page = DashboardPage.response
        let policy = page.headers["Content-Security-Policy"] ?? ""
        #expect(policy.hasPrefix("default-src 'none'; script-src 'sha256-"))
        #expect(!policy.contains("unsafe") && !policy.contains("*") && policy.contains("connect-src 'self'"))
        #expect(!page.body.contains("http:") && !page.body.contains("https:") && !page.body.contains("src="))
        // The policy would block attributes with code or style.
        #expect(page.body.firstMatch(of: /\s(?:on\w+|style)="/) == nil)
        for sink in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            #expect(!DashboardScript.text.contains(sink))
        }
    }

    private func hostileStore(_ folder: TemporaryFolder) throws -> Store {
        let store = try Store.create(path: folder.path("a.sqlite"))
        let table = Self.hostile.replacing("\"", with: "\"\"")
        try store.write { try $0.execute(sql: "CREATE TABLE \"\(table)\"(id INTEGER PRIMARY KEY, secret TEXT)") }
        _ = try store.attach()
        try store.write(author: Self.hostile) {
            try $0.execute(sql: "INSERT INTO \"\(table)\"(secret) VALUES ('a value'), ('another value')")
        }
        return store
    }

    @Test func theActivityNamesAuthorsAndTablesWithoutValues() throws {
        let folder = try TemporaryFolder()
        let store = try hostileStore(folder)
        let line = try JSON.line(Activity(store, try SyncStatus.read(store)).document)
        #expect(!line.contains("a value") && !line.contains("another value"))
        let json = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        let newest = try #require((json["transactions"] as? [[String: Any]])?.first)
        #expect(newest["author"] as? String == Self.hostile)
        #expect(newest["remote"] as? Bool == false && newest["cut"] as? Bool == false)
        let change = try #require((newest["changes"] as? [[String: Any]])?.first)
        #expect(change["table"] as? String == Self.hostile)
        #expect(change["kind"] as? String == "insert" && change["count"] as? Int == 2)
    }

    @Test func aLargeTransactionIsCountedUpToALimit() throws {
        let folder = try TemporaryFolder()
        let store = try Store.create(path: folder.path("a.sqlite"))
        try store.write { try $0.execute(sql: "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT)") }
        _ = try store.attach()
        for _ in 1...3 {
            try store.write(author: "bulk") { db in
                for number in 1...20 { try db.execute(sql: "INSERT INTO note(text) VALUES (?)", arguments: [number]) }
            }
        }
        let recent = try store.recentTransactions(limit: 2, changesEach: 10)
        #expect(recent.count == 2)
        #expect(recent.allSatisfy { $0.isCut && $0.author == "bulk" && $0.changes.first?.count == 11 })
        #expect(recent[0].id > recent[1].id)
        #expect(try store.recentTransactions(limit: 1, changesEach: 20).first?.isCut == false)
    }

    /// In a real browser the page shows the names literally, and runs no code of them.
    @Test(.enabled(if: chromium != nil, "chromium is not installed"))
    func aBrowserShowsHostileNamesAsText() throws {
        let folder = try TemporaryFolder()
        let store = try hostileStore(folder)
        var configuration = AgentConfiguration()
        configuration.storePath = store.path
        configuration.sync.name = Self.hostile
        configuration.kafka.node = "a"
        _ = try SyncEngine(path: store.path, configuration: configuration.sync)
        let address = try #require(ListenAddress("127.0.0.1:0"))
        let rules = RequestGuard(address, token: nil, openPaths: AgentEndpoints.openPaths)
        let endpoints = AgentEndpoints(
            storePath: store.path, registry: MetricsRegistry(), log: .init(label: "test"),
            rules: rules, actions: .none, configuration: { [configuration] in configuration }
        ) {
            var consumer = ConsumerProgress(startedAt: .now)
            consumer.problem = Self.hostile
            return AgentFacts(
                now: .now, milliseconds: WallClock.milliseconds, consumer: consumer,
                publisher: PublisherProgress(acknowledged: 0, advancedAt: .now))
        }
        let server = try HTTPServer(address, rules: rules, answer: endpoints.answer)
        defer { server.stop() }
        let page = try Self.browse("http://\(server.address)/", folder)
        let escaped = Self.hostile.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(
            ">", with: "&gt;")
        // The name of the node, the reason, the author and the table.
        #expect(page.components(separatedBy: escaped).count >= 5, "\(page)")
        #expect(!page.contains("<img") && !page.contains("<title>owned"))
        #expect(page.contains("2 inserted"))
    }

    /// The document after its scripts have run.
    private static func browse(_ url: String, _ folder: TemporaryFolder) throws -> String {
        guard let chromium else { throw TestFailure("There is no chromium") }
        let output = folder.path("page.html")
        _ = FileManager.default.createFile(atPath: output, contents: nil)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: chromium)
        process.arguments = [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--user-data-dir=\(folder.path("profile"))",
            "--virtual-time-budget=5000", "--dump-dom", url,
        ]
        process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: output))
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        return try String(contentsOfFile: output, encoding: .utf8)
    }
}
