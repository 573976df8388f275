package import Crypto
import Foundation
public import MartletCore

/// The private key with which a node proves that a message is its own: Ed25519. Never printed.
public struct NodeSigningKey: Sendable, CustomStringConvertible, CustomReflectable {
    private static let prefix = "ed25519-private:"
    package let key: Curve25519.Signing.PrivateKey

    /// Creates a new random key.
    public init() { key = Curve25519.Signing.PrivateKey() }

    /// - Parameter text: the contents of a key file: ``secretText``.
    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument`. It never shows the text.
    public init(parsing text: String) throws(StoreError) {
        let text = text.trimmingCharacters(in: .whitespacesAndNewlines)
        guard text.hasPrefix(Self.prefix), let bytes = Data(base64Encoded: String(text.dropFirst(Self.prefix.count))),
            let key = try? Curve25519.Signing.PrivateKey(rawRepresentation: bytes)
        else {
            throw StoreError(
                .invalidArgument, "The signing key is invalid: it must be `\(Self.prefix)` and 32 bytes in Base64.",
                hint: "Create one with `martlet key generate FILE`.")
        }
        self.key = key
    }

    /// The public key, by which other nodes verify this node's messages.
    public var publicKey: NodePublicKey { NodePublicKey(key: key.publicKey) }

    /// The text of a key file, which only its owner should be able to read.
    public var secretText: String { Self.prefix + key.rawRepresentation.base64EncodedString() }

    public var description: String { "signing key of \(publicKey)" }
    public var customMirror: Mirror { Mirror(self, children: ["publicKey": publicKey]) }

    package func signature(of bytes: [UInt8]) throws -> [UInt8] { Array(try key.signature(for: bytes)) }
}

/// The public half of a ``NodeSigningKey``. Not a secret.
public struct NodePublicKey: Sendable, Hashable, CustomStringConvertible {
    private static let prefix = "ed25519:"
    private let bytes: Data

    fileprivate init(key: Curve25519.Signing.PublicKey) { bytes = key.rawRepresentation }

    /// Parses a public key. Returns nil if the text is not `ed25519:` and 32 bytes in Base64.
    public init?(_ text: String) {
        guard text.hasPrefix(Self.prefix), let bytes = Data(base64Encoded: String(text.dropFirst(Self.prefix.count))),
            (try? Curve25519.Signing.PublicKey(rawRepresentation: bytes)) != nil
        else { return nil }
        self.bytes = bytes
    }

    public var description: String { Self.prefix + bytes.base64EncodedString() }

    package func isValid(_ signature: [UInt8], of message: [UInt8]) -> Bool {
        guard let key = try? Curve25519.Signing.PublicKey(rawRepresentation: bytes) else { return false }
        return key.isValidSignature(signature, for: message)
    }
}
