/// How a client connects to the brokers: librdkafka's `security.protocol`.
public enum KafkaSecurityProtocol: String, Sendable, CaseIterable {
    case plaintext
    case ssl
    case saslPlaintext = "sasl_plaintext"
    case saslSSL = "sasl_ssl"

    var usesSASL: Bool { self == .saslPlaintext || self == .saslSSL }
    var usesTLS: Bool { self == .ssl || self == .saslSSL }
}

/// The credentials with which a client logs in to the brokers, by SASL.
public struct KafkaCredentials: Sendable, Equatable {
    /// librdkafka's `sasl.mechanism`: `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`, `OAUTHBEARER`, ...
    public var mechanism: String
    /// The user name. With ``tokenFile``, the name that is used if the token contains none; it may be empty then.
    public var username: String
    /// Never printed. Not sent if there is a ``tokenFile``.
    public var password: Secret
    /// The path of a file with a token for `OAUTHBEARER`: a JWT or any other kind.
    ///
    /// It is read before the first login, then again after 48 seconds at most, and ten seconds after it held no usable
    /// token. A token is not usable if it has expired, or if every user of the machine can read or write the file.
    /// Replace the file as a whole (by renaming), and before its token expires.
    public var tokenFile: String?

    public init(mechanism: String = "SCRAM-SHA-512", username: String, password: Secret) {
        self.mechanism = mechanism
        self.username = username
        self.password = password
    }

    /// Creates credentials with a token instead of a password, for `OAUTHBEARER`.
    ///
    /// - Parameter username: see ``username``.
    public init(tokenFile: String, username: String = "") {
        self.init(mechanism: "OAUTHBEARER", username: username, password: "")
        self.tokenFile = tokenFile
    }
}

/// The paths of the PEM files for TLS connections.
public struct KafkaTLS: Sendable, Equatable {
    /// The certificates to trust. Default: the system's.
    public var caLocation: String?
    /// The client's own certificate, for mutual TLS.
    public var certificateLocation: String?
    /// The private key of the client's own certificate.
    public var keyLocation: String?
    /// The password of the private key. Never printed.
    public var keyPassword: Secret?

    public init(
        caLocation: String? = nil, certificateLocation: String? = nil, keyLocation: String? = nil,
        keyPassword: Secret? = nil
    ) {
        self.caLocation = caLocation
        self.certificateLocation = certificateLocation
        self.keyLocation = keyLocation
        self.keyPassword = keyPassword
    }
}

/// How a producer compresses batches: librdkafka's `compression.codec`.
public enum KafkaCompression: String, Sendable, CaseIterable {
    case none, gzip, snappy, lz4, zstd
}
