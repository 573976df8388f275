public import Logging
public import MartletSync

/// The settings of encryption and signatures.
public struct AgentSecurity: Sendable, Equatable {
    /// The file with the keys that encrypt payloads; see ``/MartletWire/KeyRing``. Absent (the default): payloads are
    /// not encrypted.
    public var keyRingFile: String?
    /// The file with this node's signing key. Absent (the default): messages are not signed.
    public var signingKeyFile: String?
    /// The rules that decide which messages are accepted from the topic, and from whom.
    public var rules = SecurityConfiguration()

    public init() {}

    /// Returns every problem with the values, as `field: what is wrong with the value`.
    public func validate() -> [String] {
        var problems = rules.validate().map { $0.hasPrefix("max") ? "limits.\($0)" : $0 }
        if rules.acceptPlaintext != .refuse, keyRingFile == nil {
            problems.append("acceptPlaintext: has no effect without keyRingFile")
        }
        return problems
    }

    /// Reads the files.
    ///
    /// - Throws: ``/MartletCore/StoreError`` if one can't be used. The error never shows the file's contents.
    public func load(log: Logger) throws -> MessageSecurity {
        MessageSecurity(
            rules, keys: try keyRingFile.map(KeyRingFile.init),
            signingKey: try signingKeyFile.map {
                try NodeSigningKey(parsing: SecretFile.read($0, as: "signing key").text)
            }, log: log)
    }
}
