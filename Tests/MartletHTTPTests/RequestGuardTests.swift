import MartletAgent
import MartletKafka
import Testing

@testable import MartletHTTP

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
    func namesOfTheLoopbackInterfaceAreAnswered(host: String) throws {
        #expect(try refusal("127.0.0.1:9464", host: host) == nil)
    }

    /// A page of evil.example whose name now means 127.0.0.1 is one whose script could read the answer.
    @Test(arguments: [
        "evil.example", "evil.example:9464", "localhost.evil.example", "127.0.0.1.evil.example", "192.168.1.1", "[::2]",
        "localhost:port", "[::1", "[::1]x", "", "127.1", "2130706433", "localhost:1:2",
    ])
    func otherNamesAreRefusedOnTheLoopbackInterface(host: String) throws {
        let status = try refusal("127.0.0.1:9464", host: host)
        #expect(status == (host.isEmpty ? 400 : 421))
    }

    @Test func otherNamesAreAnsweredElsewhereWithTheToken() throws {
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
    func nothingButTheTokenIsTheToken(values: [String]) throws {
        let headers = values.map { (name: "Authorization", value: $0) }
        #expect(try refusal("127.0.0.1:1", host: "localhost", token: "abcdefghijklmnop", headers) == 401)
    }
}
