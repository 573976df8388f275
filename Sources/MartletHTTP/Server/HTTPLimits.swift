import NIOCore
import NIOHTTP1

/// The limits for the server's clients.
public struct HTTPLimits: Sendable, Equatable {
    /// The most connections. Others are closed at once. Default: 32.
    public var maxConnections = 32
    /// The largest path with its query, in bytes. Default: 1024.
    public var maxTargetBytes = 1024
    /// The largest path and headers of a request together, in bytes. Default: 8192.
    public var maxHeaderBytes = 8192
    /// The most headers of a request. Default: 64.
    public var maxHeaderCount = 64
    /// How long a client may take to send a request, counted from the connection or the previous answer. Default: 15
    /// seconds.
    public var requestTimeout = Duration.seconds(15)
    /// How long an answer may take, from the request until the client has received it. Default: 15 seconds.
    public var responseTimeout = Duration.seconds(15)
    /// How long a client may take to receive a part of a stream, and as long again for each 4 MiB of it. Default: 60
    /// seconds.
    public var streamWriteTimeout = Duration.seconds(60)
    /// How long a stream is silent before the server writes a sign of life. Default: 15 seconds.
    public var heartbeatInterval = Duration.seconds(15)

    public init() {}

    /// How long a client may take to receive a part of a stream of this size. Otherwise a client on a slow link would
    /// begin again and again with the same large transaction.
    package func streamWriteTimeout(bytes: Int) -> Duration { streamWriteTimeout * (1 + bytes / (4 << 20)) }

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
