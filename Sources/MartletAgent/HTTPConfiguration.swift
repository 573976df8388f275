public import MartletKafka

/// The settings of the agent's HTTP server.
public struct HTTPConfiguration: Sendable, Equatable {
    /// The largest lag at which a node reports itself as ready.
    public enum ReadyLag: Sendable, Equatable {
        /// A number of messages, summed over all partitions.
        case messages(Int64)
        /// The lag in time of the partition that is furthest behind.
        case time(Duration)

        /// - Parameter text: a number of messages, or a duration with its unit.
        public init?(text: String) {
            if let count = Int64(text) {
                self = .messages(count)
            } else if let duration = Duration(text: text) {
                self = .time(duration)
            } else {
                return nil
            }
        }
    }

    /// `HOST:PORT`, with an IP address or `localhost`. Absent (the default): there is no HTTP.
    public var listen: String?
    /// The token that clients must send. Required if ``listen`` is not an address of the loopback interface.
    public var token: Secret?
    /// The largest lag of a ready node. Default: 30 seconds.
    public var readyLag = ReadyLag.time(.seconds(30))

    /// Whether clients with the token see values of rows. Without a token nobody does. Default: true.
    public var showsValues = true

    public init() {}

    /// Shorter tokens could be guessed.
    private static let minTokenLength = 16

    /// The address of ``listen``. Nil if it is not valid.
    public var address: ListenAddress? { listen.flatMap(ListenAddress.init) }

    /// Returns every problem, as `field: what is wrong with the value`.
    public func validate() -> [String] {
        var problems: [String] = []
        if let listen {
            if let address {
                if !address.isLoopback, token == nil {
                    problems.append(
                        "listen: other machines can reach \(address), so requests need a token. Write one to a file "
                            + "(openssl rand -hex 32 > http.token; chmod 600 http.token) and set http.tokenFile to it; "
                            + "or set MARTLET_HTTP_TOKEN; or listen on 127.0.0.1")
                }
            } else {
                problems.append(
                    "listen: \(listen) must be HOST:PORT with an IP address or localhost: 127.0.0.1:9464 or [::1]:9464"
                )
            }
        }
        if let token {
            if token.value.utf8.count < Self.minTokenLength {
                problems.append(
                    "token: is shorter than \(Self.minTokenLength) characters; make one with: openssl rand -hex 32")
            }
            if !token.value.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) {
                problems.append("token: must consist of visible ASCII characters, without spaces")
            }
        }
        switch readyLag {
        case .messages(..<0): problems.append("readyLag: must not be negative")
        case .time(let time) where time <= .zero: problems.append("readyLag: must be above 0")
        case .messages, .time: break
        }
        return problems
    }
}
