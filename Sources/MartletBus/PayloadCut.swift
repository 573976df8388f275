import MartletCore

/// The size and digest of a payload that is too large, so that only its beginning was copied from the bus.
public struct PayloadCut: Sendable, Equatable {
    /// The number of bytes that are copied of a payload that is too large.
    public static let beginningBytes = 1024

    /// The size of the whole payload.
    public var byteCount: Int
    /// The SHA-256 of the whole payload.
    public var digest: [UInt8]

    public init(byteCount: Int, digest: [UInt8]) {
        self.byteCount = byteCount
        self.digest = digest
    }
}

extension IncomingMessage {
    /// Copies the payload, or only its beginning if it has more bytes than the limit.
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
