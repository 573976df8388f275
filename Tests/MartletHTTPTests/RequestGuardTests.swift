import MartletAgent
import MartletHTTP
import MartletKafka
import Testing

@Suite struct RequestGuardTests {
    private func refusal(
        _ address: String, host: String, token: Secret? = nil, path: String = "/status",
        _ headers: [(name: String, value: String)] = []
    ) throws -> Int? {
        let rules = RequestGuard(try #require(ListenAddress(address)), token: token, openPaths: ["/open"])
        return rules.refusal(of: HTTPRequest("GET", path, [("Host", host)] + headers))?.status
    }

    @Test(arguments: [
        "localhost", "LOCALHOST:9464", "127.0.0.1", "127.0.0.1:9464", "127.1.2.3", "[::1]", "[::1]:9464",
        "[::ffff:127.0.0.1]:1",
    ])
    func theGuardAcceptsNamesOfTheLoopbackInterface(host: String) throws {
        #expect(try refusal("127.0.0.1:9464", host: host) == nil)
    }

    /// DNS rebinding: a script of evil.example, whose name now resolves to 127.0.0.1, could read the answer.
    @Test(arguments: [
        "evil.example", "evil.example:9464", "localhost.evil.example", "127.0.0.1.evil.example", "192.168.1.1", "[::2]",
        "localhost:port", "[::1", "[::1]x", "", "127.1", "2130706433", "localhost:1:2",
    ])
    func theGuardRefusesOtherNamesOnTheLoopbackInterface(host: String) throws {
        let status = try refusal("127.0.0.1:9464", host: host)
        #expect(status == (host.isEmpty ? 400 : 421))
    }

    @Test func theGuardAcceptsOtherNamesElsewhereWithTheToken() throws {
        let token: Secret = "abcdefghijklmnop"
        let header = (name: "authorization", value: "bearer abcdefghijklmnop")
        #expect(try refusal("0.0.0.0:9464", host: "edge-7.example", token: token, [header]) == nil)
        #expect(try refusal("0.0.0.0:9464", host: "edge-7.example", token: token) == 401)
        #expect(try refusal("0.0.0.0:9464", host: "edge-7.example", token: token, path: "/open?a=b") == nil)
        #expect(try refusal("0.0.0.0:9464", host: "edge-7.example", token: token, path: "/open/../status") == 401)
    }

    @Test(arguments: [
        [], ["Bearer"], ["Bearer "], ["Bearer abcdefghijklmno"], ["Bearer abcdefghijklmnopq"],
        ["Bearer ABCDEFGHIJKLMNOP"],
        ["Basic abcdefghijklmnop"], ["abcdefghijklmnop"], ["Bearer  abcdefghijklmnop"],
        ["Bearer abcdefghijklmnop", "Bearer abcdefghijklmnop"],
    ])
    func theGuardRefusesAnyOtherAuthorization(values: [String]) throws {
        let headers = values.map { (name: "Authorization", value: $0) }
        #expect(try refusal("127.0.0.1:1", host: "localhost", token: "abcdefghijklmnop", headers) == 401)
    }

    /// On the loopback interface any page could otherwise keep the node, and others, at work.
    @Test(arguments: ["cross-site", "same-site", "nonsense"])
    func theGuardRefusesWhatPagesOfOtherOriginsRequest(site: String) throws {
        func status(_ destination: String?, path: String = "/digest") throws -> Int? {
            var headers = [(name: "Sec-Fetch-Site", value: site)]
            if let destination { headers.append((name: "Sec-Fetch-Dest", value: destination)) }
            return try refusal("127.0.0.1:9464", host: "localhost", path: path, headers)
        }
        for destination in [nil, "empty", "image", "script", "iframe"] { #expect(try status(destination) == 403) }
        #expect(try status("image", path: "/open") == nil)
        // A link to the page, or to one of its documents.
        #expect(try status("document") == nil)
    }

    @Test(arguments: ["same-origin", "none"]) func theGuardAcceptsWhatItsOwnPageRequests(site: String) throws {
        let headers = [(name: "Sec-Fetch-Site", value: site), (name: "Sec-Fetch-Dest", value: "empty")]
        #expect(try refusal("127.0.0.1:9464", host: "localhost", path: "/digest", headers) == nil)
    }

    /// The status that refuses a POST to `/change`; nil if it is accepted.
    private func changing(
        token: Secret?, path: String = "/change", _ headers: [(name: String, value: String)] = []
    ) throws -> Int? {
        let rules = RequestGuard(
            try #require(ListenAddress("127.0.0.1:9464")), token: token, openPaths: ["/open"],
            isChange: { $0 == "/change" })
        return rules.refusal(of: HTTPRequest("POST", path, [("Host", "localhost:9464")] + headers))?.status
    }

    @Test func changesNeedATokenEvenWhereReadingNeedsNone() throws {
        let token: Secret = "abcdefghijklmnop"
        let right = (name: "Authorization", value: "Bearer abcdefghijklmnop")
        #expect(try changing(token: nil) == 403)
        #expect(try changing(token: nil, [right]) == 403)
        #expect(try changing(token: token) == 401)
        #expect(try changing(token: token, [("Authorization", "Bearer abcdefghijklmnoq")]) == 401)
        #expect(try changing(token: token, [right]) == nil)
        #expect(try changing(token: token, path: "/open", [right]) == 405)
        #expect(try changing(token: token, path: "/status", [right]) == 405)
        #expect(try changing(token: token, [right, ("Content-Length", "5")]) == 413)
    }

    @Test func theGuardRefusesChangesFromOtherOrigins() throws {
        let token: Secret = "abcdefghijklmnop"
        let right = (name: "Authorization", value: "Bearer abcdefghijklmnop")
        for origin in ["http://localhost:9464", "https://localhost:9464"] {
            #expect(try changing(token: token, [right, ("Origin", origin)]) == nil)
        }
        for origin in ["http://evil.example", "null", "", "http://localhost:1", "http://localhost:9464.evil.example"] {
            #expect(try changing(token: token, [right, ("Origin", origin)]) == 403, "\(origin)")
        }
        #expect(
            try changing(token: token, [right, ("Origin", "http://localhost:9464"), ("Origin", "http://evil.example")])
                == 403)
    }
}
