import MartletCore

/// What is known of a payload of which only the beginning was taken from the bus: it is too large to be copied for
/// nothing.
public struct PayloadCut: Sendable, Equatable {
    /// How many bytes are taken of a payload that is too large.
    public static let beginningBytes = 1024

    /// How many bytes it had.
    public var byteCount: Int
    /// The SHA-256 of all of them.
    public var digest: [UInt8]

    public init(byteCount: Int, digest: [UInt8]) {
        self.byteCount = byteCount
        self.digest = digest
    }
}

extension IncomingMessage {
    /// Copies the payload, or no more than its beginning where it has more bytes than a limit.
    public mutating func take(_ bytes: UnsafeRawBufferPointer, limit: Int) {
        guard bytes.count > limit else {
            payload = Array(bytes)
            cut = nil
            return
        }
        payload = Array(bytes.prefix(PayloadCut.beginningBytes))
        cut = PayloadCut(byteCount: bytes.count, digest: ContentDigest.sha256(bytes))
    }
}
