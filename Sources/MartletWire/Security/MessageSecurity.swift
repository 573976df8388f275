public import Logging

/// Where the present key ring is to be had.
public protocol KeySource: Sendable {
    /// The key ring as it is now. Called for every batch of messages, from any thread: it should cost little while
    /// nothing has changed.
    ///
    /// - Throws: any error where there is none to be had now. The one before stays in use then.
    func ring() throws -> KeyRing
}

/// A key ring that stays as it is.
public struct FixedKeys: KeySource {
    private let fixed: KeyRing

    public init(_ ring: KeyRing) { fixed = ring }

    public func ring() -> KeyRing { fixed }
}

/// All that protects what a node sends and reads.
public struct MessageSecurity: Sendable {
    public var configuration: SecurityConfiguration
    /// Absent: messages are not sealed.
    public var keys: (any KeySource)?
    /// Absent: messages are not signed.
    public var signingKey: NodeSigningKey?
    /// Is told of a key ring that can't be read any more.
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
