/// A server's answer to a request: at once, when a condition is met, or part by part.
package enum HTTPAnswer: Sendable {
    case now(HTTPResponse)
    /// The server calls `look` repeatedly, on the thread that answers requests, until it returns a response or the
    /// client has gone.
    case later(look: @Sendable () -> HTTPResponse?)
    /// A response without a length. The server writes what the stream returns, until one of both sides ends it.
    case stream(HTTPResponse, any HTTPStream)
}
