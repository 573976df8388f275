import CLibCrypto

/// Digests of bytes, computed by the system's own library. A target that needs only a digest doesn't have to build a
/// cryptography package.
package enum ContentDigest {
    /// Returns the SHA-256 of the bytes.
    package static func sha256(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Int(SHA256_DIGEST_LENGTH)) { hash, count in
            _ = SHA256(bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count, hash.baseAddress)
            count = Int(SHA256_DIGEST_LENGTH)
        }
    }
}
