import Crypto
import Foundation
package import MartletAgent
package import MartletKafka

/// Decides which requests are answered. Pure.
package struct RequestGuard: Sendable {
    private let isLoopback: Bool
    private let maxTargetBytes: Int
    /// Digests are compared instead of tokens: in constant time, whatever the length of the client's text.
    private let token: SHA256.Digest?
    private let openPaths: Set<String>
    private let isChange: @Sendable (Substring) -> Bool

    /// - Parameters:
    ///   - openPaths: the paths that are served without the token.
    ///   - isChange: returns true if a POST to a path is supported. Default: none is.
    package init(
        _ address: ListenAddress, token: Secret?, openPaths: Set<String>, limits: HTTPLimits = .init(),
        isChange: @escaping @Sendable (Substring) -> Bool = { _ in false }
    ) {
        isLoopback = address.isLoopback
        maxTargetBytes = limits.maxTargetBytes
        self.token = token.map { SHA256.hash(data: Data($0.value.utf8)) }
        self.openPaths = openPaths
        self.isChange = isChange
    }

    /// Returns the reason why a request is not answered. Nil if it is answered.
    package func refusal(of request: HTTPRequest) -> HTTPResponse? {
        if let refusal = hostRefusal(of: request) { return refusal }
        let changes = request.method == "POST" && isChange(request.path)
        guard changes || request.method == "GET" || request.method == "HEAD" else {
            return .text(405, "This path only supports GET and HEAD.", headers: ["Allow": "GET, HEAD"])
        }
        guard !request.hasBody else { return .text(413, "Requests must not have a body.") }
        guard request.target.utf8.count <= maxTargetBytes else {
            return .text(414, "The path is longer than \(maxTargetBytes) bytes.")
        }
        guard request.target.hasPrefix("/") else { return .text(400, "The path must begin with a slash.") }
        if changes, let refusal = changeRefusal(of: request) { return refusal }
        guard openPaths.contains(String(request.path)) || isAuthorized(request) else {
            return .text(
                401, "Send the token of http.tokenFile: Authorization: Bearer TOKEN",
                headers: ["WWW-Authenticate": "Bearer realm=\"martlet\""])
        }
        guard openPaths.contains(String(request.path)) || !isOfOtherPage(request) else {
            return .text(403, "Cross-origin requests are refused.")
        }
        return nil
    }

    /// Returns true if a page of another origin has the browser send the request. The page can't read the answer, but
    /// the answer may be work: `/digest` reads every row, and `/wait` asks all other nodes.
    /// https://www.w3.org/TR/fetch-metadata/
    private func isOfOtherPage(_ request: HTTPRequest) -> Bool {
        let isOther = request.values("sec-fetch-site").contains { $0 != "same-origin" && $0 != "none" }
        // Somebody may follow a link.
        return isOther && request.values("sec-fetch-dest") != ["document"]
    }

    /// Refuses changes without a token, even on the loopback interface: every user of the machine can reach that. Also
    /// refuses changes by pages of other sites, which could not know the token anyway.
    private func changeRefusal(of request: HTTPRequest) -> HTTPResponse? {
        guard token != nil else {
            return .text(403, "Changes need a token: set http.tokenFile.")
        }
        let origins = request.values("origin")
        guard
            origins.isEmpty || origins == request.values("host").map({ "http://" + $0 })
                || origins == request.values("host").map({ "https://" + $0 })
        else { return .text(403, "Cross-origin requests are refused.") }
        return nil
    }

    /// Returns true if there is a token, and the request has it.
    func isIdentified(_ request: HTTPRequest) -> Bool { token != nil && isAuthorized(request) }

    /// Refuses the host names of other sites: a page whose name was rebound to 127.0.0.1 sends its own name.
    /// https://en.wikipedia.org/wiki/DNS_rebinding
    private func hostRefusal(of request: HTTPRequest) -> HTTPResponse? {
        let hosts = request.values("host")
        guard hosts.count == 1, let host = hosts.first, !host.isEmpty else {
            return .text(400, "A request must have exactly one Host header.")
        }
        guard isLoopback, !Self.isLocal(host) else { return nil }
        return .text(
            421, "This is a loopback address: use localhost or 127.0.0.1 as the host.")
    }

    private static func isLocal(_ host: String) -> Bool {
        var name = host[...]
        if name.hasPrefix("[") {
            guard let end = name.firstIndex(of: "]"), isPort(name[name.index(after: end)...]) else { return false }
            return ListenAddress.isLoopback(String(name[name.index(after: name.startIndex)..<end]))
        }
        if let colon = name.firstIndex(of: ":") {
            guard isPort(name[colon...]) else { return false }
            name = name[..<colon]
        }
        return name.lowercased() == "localhost" || ListenAddress.isLoopback(String(name))
    }

    private static func isPort(_ text: Substring) -> Bool {
        text.isEmpty || text.hasPrefix(":") && UInt16(text.dropFirst()) != nil
    }

    /// Returns true if there is no token, or the request has it.
    func isAuthorized(_ request: HTTPRequest) -> Bool {
        guard let token else { return true }
        let values = request.values("authorization")
        guard values.count == 1, let value = values.first, value.prefix(7).lowercased() == "bearer " else {
            return false
        }
        return SHA256.hash(data: Data(value.dropFirst(7).utf8)) == token
    }
}
