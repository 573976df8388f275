/// What a server answers a request with: at once, or when it has come to pass.
enum HTTPAnswer: Sendable {
    case now(HTTPResponse)
    /// `look` is called again and again, on the thread on which requests are answered, until it returns a response or
    /// the client has gone.
    case later(look: @Sendable () -> HTTPResponse?)
}
