import Foundation
import NIOHTTP1

/// A response, with headers that let browsers do nothing but show it.
package struct HTTPResponse: Sendable, Equatable {
    package var status: Int
    package var contentType: String
    package var body: String
    package var headers: [String: String] = [:]

    package init(_ status: Int, _ contentType: String, _ body: String, headers: [String: String] = [:]) {
        self.status = status
        self.contentType = contentType
        self.body = body
        self.headers = headers
    }

    /// Makes a response with a sentence for people.
    package static func text(_ status: Int, _ text: String, headers: [String: String] = [:]) -> HTTPResponse {
        HTTPResponse(status, "text/plain; charset=utf-8", text + "\n", headers: headers)
    }

    package static func json(_ status: Int, _ json: String) -> HTTPResponse {
        HTTPResponse(status, "application/json", json + "\n")
    }

    /// Responses must not be cached, framed, or used by pages of other sites.
    private static let security = [
        "Cache-Control": "no-store",
        "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
    ]

    var allHeaders: HTTPHeaders {
        var all = streamHeaders
        all.add(name: "Content-Length", value: "\(body.utf8.count)")
        return all
    }

    /// The headers of a response whose length is not known.
    var streamHeaders: HTTPHeaders {
        var all = HTTPHeaders()
        let fields = Self.security.merging(headers) { $1 }
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) { all.add(name: name, value: value) }
        all.add(name: "Content-Type", value: contentType)
        return all
    }
}
