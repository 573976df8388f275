import NIOHTTP1

/// The head of a request. Requests with a body are refused before they get here.
package struct HTTPRequest: Sendable, Equatable {
    package var method: String
    /// The path with its query, as sent.
    package var target: String
    /// The headers in the order in which they were sent, unchanged.
    package var headers: [(name: String, value: String)]

    package static func == (a: Self, b: Self) -> Bool {
        a.method == b.method && a.target == b.target && a.headers.elementsEqual(b.headers, by: ==)
    }

    package init(_ method: String, _ target: String, _ headers: [(name: String, value: String)] = []) {
        self.method = method
        self.target = target
        self.headers = headers
    }

    init(_ head: HTTPRequestHead) {
        self.init(head.method.rawValue, head.uri, head.headers.map { ($0.name, $0.value) })
    }

    package var path: Substring { target.prefix { $0 != "?" } }

    func values(_ name: String) -> [String] {
        headers.filter { $0.name.lowercased() == name }.map(\.value)
    }

    var hasBody: Bool {
        !values("transfer-encoding").isEmpty || values("content-length").contains { $0 != "0" }
    }
}
