/// A server's answer to a request: at once, or when a condition is met.
package enum HTTPAnswer: Sendable {
    case now(HTTPResponse)
    /// The server calls `look` repeatedly, on the thread that answers requests, until it returns a response or the
    /// client has gone.
    case later(look: @Sendable () -> HTTPResponse?)
}
