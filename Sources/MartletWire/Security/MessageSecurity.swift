public import Logging

/// A source of the present key ring.
public protocol KeySource: Sendable {
    /// Returns the present key ring. Called for every batch of messages, from any thread, so it should be cheap while
    /// nothing has changed.
    ///
    /// - Throws: any error if the key ring is not available. The previous one then stays in use.
    func ring() throws -> KeyRing
}

/// A key source whose key ring never changes.
public struct FixedKeys: KeySource {
    private let fixed: KeyRing

    public init(_ ring: KeyRing) { fixed = ring }

    public func ring() -> KeyRing { fixed }
}

/// Everything that protects the messages that a node sends and reads.
public struct MessageSecurity: Sendable {
    public var configuration: SecurityConfiguration
    /// If nil, messages are not encrypted.
    public var keys: (any KeySource)?
    /// If nil, messages are not signed.
    public var signingKey: NodeSigningKey?
    /// Receives an error when the key ring can't be read any more.
    public var log: Logger

    public init(
        _ configuration: SecurityConfiguration = .init(), keys: (any KeySource)? = nil,
        signingKey: NodeSigningKey? = nil,
        log: Logger = Logger(label: "martlet.security")
    ) {
        self.configuration = configuration
        self.keys = keys
        self.signingKey = signingKey
        self.log = log
    }
}
