import NIOCore
import NIOHTTP1

/// What one client may ask of the server.
public struct HTTPLimits: Sendable, Equatable {
    /// Connections beyond these are closed at once. Default: 32.
    public var maxConnections = 32
    /// The path with its query, in bytes. Default: 1024.
    public var maxTargetBytes = 1024
    /// The path and all headers of a request, in bytes. Default: 8192.
    public var maxHeaderBytes = 8192
    /// Default: 64.
    public var maxHeaderCount = 64
    /// How long a client may take to send a request, from the connection or the answer before on. Default: 15 seconds.
    public var requestTimeout = Duration.seconds(15)
    /// How long an answer may take, from the request until the client has taken it. Default: 15 seconds.
    public var responseTimeout = Duration.seconds(15)

    public init() {}

    var decoder: NIOHTTPDecoderLimitConfiguration {
        var limits = NIOHTTPDecoderLimitConfiguration()
        limits.maxHeaderFieldSize = maxHeaderBytes
        limits.maxHeaderListSize = maxHeaderBytes
        limits.maxHeaderFieldCount = maxHeaderCount
        return limits
    }
}

extension Duration {
    var timeAmount: TimeAmount { .nanoseconds(Int64(self / .nanoseconds(1))) }
}
