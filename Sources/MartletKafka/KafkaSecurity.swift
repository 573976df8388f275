/// How a client reaches the brokers: librdkafka's `security.protocol`.
public enum KafkaSecurityProtocol: String, Sendable, CaseIterable {
    case plaintext
    case ssl
    case saslPlaintext = "sasl_plaintext"
    case saslSSL = "sasl_ssl"

    var usesSASL: Bool { self == .saslPlaintext || self == .saslSSL }
    var usesTLS: Bool { self == .ssl || self == .saslSSL }
}

/// Who a client is to the brokers, by SASL.
public struct KafkaCredentials: Sendable, Equatable {
    /// librdkafka's `sasl.mechanism`: `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`, `OAUTHBEARER`, ...
    public var mechanism: String
    /// With ``tokenFile``: what the user is called here where the token does not say. May be empty then.
    public var username: String
    /// Never printed. Not sent where there is a ``tokenFile``.
    public var password: Secret
    /// The path of a file with a token, a JWT or any other, for `OAUTHBEARER`.
    ///
    /// It is read before the first login, again after 48 seconds at the latest, and ten seconds after there was no
    /// token in it that can be used: one that has expired, or that every user of the machine can get at, cannot.
    /// Replace it as a whole (by renaming), and before the token in it expires.
    public var tokenFile: String?

    public init(mechanism: String = "SCRAM-SHA-512", username: String, password: Secret) {
        self.mechanism = mechanism
        self.username = username
        self.password = password
    }

    /// With a token instead of a password, by `OAUTHBEARER`.
    ///
    /// - Parameter username: see ``username``.
    public init(tokenFile: String, username: String = "") {
        self.init(mechanism: "OAUTHBEARER", username: username, password: "")
        self.tokenFile = tokenFile
    }
}

/// Where the PEM files of a TLS connection are.
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
